import torch


def load(rank):
    map_location = f"cuda:{rank}"  # >> CM107
    return torch.load("a.pt", map_location=map_location)
