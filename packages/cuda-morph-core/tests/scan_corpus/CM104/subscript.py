def f(config):
    return config["device"] == "cuda"  # >> CM104
