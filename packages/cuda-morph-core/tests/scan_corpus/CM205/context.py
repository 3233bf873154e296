import torch

with torch.cuda.amp.autocast():  # >> CM205
    pass
scaler = torch.cuda.amp.GradScaler()  # >> CM205
