memory {
  margin = "60GiB"
}
