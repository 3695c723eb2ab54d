gpu "0" {
  memory_limit = "16GB"
}

gpu "1" {
  memory_limit = "0GiB"
}

memory {
  budget = "120%"
  margin = "2 gib"
}
