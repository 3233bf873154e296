import torch

f = getattr(torch.cuda, "synchronize")  # >> CM201
