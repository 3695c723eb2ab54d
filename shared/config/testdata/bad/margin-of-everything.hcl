memory {
  budget = "50%"
  margin = "100%"
}
