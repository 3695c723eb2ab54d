# A machine without a GPU: the CPU proves. Good for winning PoSt of small
# sectors, for tests, and to verify proofs.

memory {
  budget = "80%"
}
