def f(device, name):
    return device.startswith("cuda") or str(device).startswith("cuda:")  # >> CM104, CM104
