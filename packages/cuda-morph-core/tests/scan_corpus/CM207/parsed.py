import torch

major = int(torch.version.cuda.split(".")[0])  # >> CM207
