cpu {
  enabled = yes
}

log {
  level = debug
}
