log {
  file = ""
}
