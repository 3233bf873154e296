def f(x, device):
    if x.device.type == "cuda":  # >> CM104
        return 1
    return device != "cuda"  # >> CM104
