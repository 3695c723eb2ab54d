memory {
  budget = 80%
}
