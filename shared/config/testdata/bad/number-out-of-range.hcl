gpu "0" {
  workers = 0
}

cpu {
  workers = 17
  threads = 1.5
}

timeline {
  events = -1
}
