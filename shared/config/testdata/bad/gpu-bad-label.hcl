gpu "first" {
}

gpu "GPU-2d990430" {
}

gpu "1000" {
}
