def f(device, backends):
    if "cuda" in device:  # >> CM104
        return 1
    if device in ("cuda", "mps"):  # >> CM104
        return 2
    return "cuda" in str(device)  # >> CM104
