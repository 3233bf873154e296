import torch

with torch.amp.autocast("cpu"):
    pass
scaler = torch.amp.GradScaler()
