plugin {
  start_timeout = "5 minutes"
  stop_timeout  = "0s"
}
