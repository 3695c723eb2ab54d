# Two cards of 16 GB (RTX 5070 Ti, RTX 4080, A4000), named by PCI address and
# UUID: neither changes when cards are added or the driver numbers them anew.
# Each has half of the 32 CPUs.

gpu "0000:01:00.0" {
  cpus         = "0-7,16-23"
  memory_limit = "15GiB"
}

gpu "GPU-5c8f1b0e-62d5-9d3e-1f0a-7b1b6a0f3c21" {
  cpus         = "8-15,24-31"
  memory_limit = "15GiB"
}

memory {
  budget = "100GiB"
  margin = "8GiB"
}

parameters {
  preload = ["winning-post:32GiB"]
}
