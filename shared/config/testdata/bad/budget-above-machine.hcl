memory {
  budget = "100GiB"
}
