parameters {
  verify   = "full"
  manifest = "parameter.json"
}
