import torch


def f(rank):
    return torch.device(f"cuda:{rank}")  # >> CM106
