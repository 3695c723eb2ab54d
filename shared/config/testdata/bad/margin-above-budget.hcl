memory {
  budget = "20GiB"
  margin = "20GiB"
}
