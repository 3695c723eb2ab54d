parameters {
  verify = "ful"
}

priority {
  winning-post = "hgih"
  window_post  = "high"
}

log {
  level  = "warning"
  format = "yaml"
}
