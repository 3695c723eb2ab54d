gpu "0" {
  cpus = "0-7,9-8,10"
}

gpu "1" {
  cpus = "0-3,"
}

cpu {
  cpus = "0-7; 9"
}
