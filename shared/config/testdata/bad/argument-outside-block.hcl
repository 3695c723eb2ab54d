workers = 2
