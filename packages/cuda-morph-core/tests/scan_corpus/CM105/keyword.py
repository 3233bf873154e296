import torch

x = torch.zeros(2, device=0)  # >> CM105
