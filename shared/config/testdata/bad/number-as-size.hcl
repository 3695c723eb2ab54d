memory {
  budget = 20
}
