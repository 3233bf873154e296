import torch

f = getattr(torch.cuda, "synchronize", None)  # >> CM201
