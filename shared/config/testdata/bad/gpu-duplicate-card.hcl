gpu "0" {
}

gpu "c1:00.0" {
}

gpu "GPU-2d990430-f243-2137-3cfb-69a61ff03be6" {
}
