# One H200 (141 GB) with 16 CPUs: it holds one or two of the large parameter
# sets beside its working memory. What is preloaded first is there first.

gpu "0" {}

memory {
  budget = "110GiB"
  margin = "10GiB"
}

parameters {
  preload = ["winning-post:32GiB", "window-post:32GiB", "porep:32GiB"]
}

witness {
  # The card is faster than one partition's witness: have several on the way.
  workers = 4
  ahead   = 6
}
