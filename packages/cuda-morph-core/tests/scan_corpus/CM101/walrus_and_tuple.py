if (device := "cuda") is not None:  # >> CM101
    pass
rank, device = 0, "cuda:0"  # >> CM101
