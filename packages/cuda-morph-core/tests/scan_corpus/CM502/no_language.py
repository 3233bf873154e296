extension = ".cu"
