# One card of 24 GB (RTX 3090, RTX 4090, L4, A10) in a workstation. The large
# parameters do not fit on it: they are streamed from the page cache, so leave
# memory for that.

gpu "0" {
  # Something else draws a desktop on this card.
  memory_limit = "22GiB"
}

memory {
  budget = "60%"
}

parameters {
  preload = ["winning-post:32GiB"]
}
