gpu {
  workers = 2
}

gpu "0" "1" {
}
