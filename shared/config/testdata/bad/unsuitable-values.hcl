cpu {
  enabled = "maybe"
  workers = [2]
  cpus    = []
}

memory {
  budget = { gib = 20 }
}

parameters {
  preload = "winning-post:32GiB"
}

log {
  level = 3
}
