import torch

a = torch.load("a.pt", map_location="cuda:0")  # >> CM107
b = torch.load("b.pt", "cuda")  # >> CM107
