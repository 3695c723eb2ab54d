log = "debug"

memory {
  budget {
  }
}
