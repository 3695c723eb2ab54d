cpu {
  enabled = false
}
