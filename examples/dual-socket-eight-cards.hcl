# Two sockets of 64 cores with two threads each, four cards at each socket.
# CPUs 0-63 and 128-191 are NUMA node 0, CPUs 64-127 and 192-255 node 1. Every
# card has 16 CPUs (eight cores) of its own node, so that its workers prepare
# and finish in memory that is near it; what is left is for witnesses.

# Node 0.
gpu "0" { cpus = "0-7,128-135" }
gpu "1" { cpus = "8-15,136-143" }
gpu "2" { cpus = "16-23,144-151" }
gpu "3" { cpus = "24-31,152-159" }

# Node 1.
gpu "4" { cpus = "64-71,192-199" }
gpu "5" { cpus = "72-79,200-207" }
gpu "6" { cpus = "80-87,208-215" }
gpu "7" { cpus = "88-95,216-223" }

# If every card fails, so many CPUs with so much memory do better than wait.
cuda {
  fallback = "always"
}

memory {
  budget = "800GiB"
  margin = "32GiB"
}

parameters {
  preload = ["winning-post:32GiB", "window-post:32GiB", "porep:32GiB", "update:32GiB"]
}

witness {
  workers = 8
  threads = 128
  ahead   = 16
}

log {
  format = "json"
}
