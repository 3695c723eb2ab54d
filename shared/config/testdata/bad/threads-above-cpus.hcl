witness {
  threads = 64
}
