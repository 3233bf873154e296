import torch

device = "cuda" if torch.cuda.is_available() else "cpu"  # >> CM101, CM201
