witness {
  workers = 4
  ahead   = 2
}
