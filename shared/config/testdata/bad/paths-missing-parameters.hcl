parameters {
  dir = "missing"
}
