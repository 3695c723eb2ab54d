parameters {
  dir = "paths-unusable.hcl"
}

timeline {
  file = "../bad"
}

log {
  file = "missing/prover.log"
}
