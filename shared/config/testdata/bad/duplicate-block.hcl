log {
  level = "info"
}

log {
  format = "json"
}
