gpus "0" {
}

memroy {
  budget = "20GiB"
}

network {
}
