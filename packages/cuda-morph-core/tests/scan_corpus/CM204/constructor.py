import torch

x = torch.cuda.FloatTensor(3)  # >> CM204
h = isinstance(x, torch.cuda.HalfTensor)  # >> CM204
