memory {
  budget = "50GiB"
}
