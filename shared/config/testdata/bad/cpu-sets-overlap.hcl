gpu "0" {
  cpus = "0-7"
}

gpu "1" {
  cpus = "7-9"
}

cpu {
  cpus = "4-5,8-12"
}
