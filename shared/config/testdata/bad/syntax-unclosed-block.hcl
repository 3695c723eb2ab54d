memory {
  budget = "20GiB"
