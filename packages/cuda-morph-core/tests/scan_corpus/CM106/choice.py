import torch


def f(rank, args):
    device = f"cuda:{rank}" if torch.cuda.is_available() else "cpu"  # >> CM106, CM201
    return device
