plugin {
  sha256 = "e3b0c442"
}
supervision {
  backoff     = "1m"
  max_backoff = "1s"
  crash_limit = 0
}
journal {
  dir       = "journal-and-supervision.hcl/below"
  retention = "forever"
}
