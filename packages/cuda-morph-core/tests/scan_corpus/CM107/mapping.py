import torch

state = torch.load("a.pt", map_location={"cuda:1": "cuda:0"})  # >> CM107, CM107
