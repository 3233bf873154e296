import torch

state = torch.load("a.pt", map_location=lambda storage, location: storage)
