gpu "0" {
  workers = 99
  cpus    = "0-3,x"
}

gpu "7" {
  coffee = true
}

memory {
  budget = "1TiB"
  margin = "lots"
}

log {
  level = "loud"
}
