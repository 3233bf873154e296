import torch

with torch.autocast("cuda", dtype=torch.float16):  # >> CM101
    pass
with torch.autocast(device_type="cuda"):  # >> CM101
    pass
