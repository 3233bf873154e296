import torch

torch.cuda.current_device()  # >> CM201
