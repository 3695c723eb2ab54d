parameters {
  preload = [
    "wining-post:32GiB",
    "window-post:32GB",
    "winning-post",
    "porep:32GiB",
    "porep:32GiB",
    update,
  ]
}
