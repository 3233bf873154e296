import torch

state = torch.load("cuda.pt", map_location="cpu")
other = torch.load("b.pt", "cpu")
