parameters {
  dir = "${home}/params"
}
