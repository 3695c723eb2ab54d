gpu "0" {
  cpus = "8-31"
}

cpu {
  cpus = "0,16"
}
