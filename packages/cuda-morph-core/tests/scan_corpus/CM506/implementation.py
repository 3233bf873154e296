import torch

library = torch.library.Library("my", "DEF")


@torch.library.impl("my::op", "cuda")  # >> CM506
def op(x):
    return x
