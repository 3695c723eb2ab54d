gpu "0" {}

cuda {
  library  = "lib/libinterlock_cuda.so"
  fallback = "critical"
}
