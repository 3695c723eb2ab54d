gpu "0" {
}

gpu "1" {
}

gpu "0" {
}
