gpu "0" {
  workrs = 2
  cpu    = "0-7"
}

witness {
  threads = 4
  colour  = "green"
}
