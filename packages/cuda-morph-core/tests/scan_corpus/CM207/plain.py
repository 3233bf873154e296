import torch

if torch.version.cuda is None:  # >> CM207
    pass
