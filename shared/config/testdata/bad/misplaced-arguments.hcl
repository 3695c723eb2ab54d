budget = "20GiB"

memory {
  memory_limit = "16GiB"
}
