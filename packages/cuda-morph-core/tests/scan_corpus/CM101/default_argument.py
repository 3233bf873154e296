def build(model, device="cuda", *, other_device="cuda:0"):  # >> CM101, CM101
    return model, device, other_device
