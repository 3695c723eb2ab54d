log {
  level = "info"
  level = "debug"
}
