def check(device_from, device_to, brand):
    if "cuda" in (device_from, device_to):  # >> CM104
        return True
    return "cuda" in (brand, "other")
