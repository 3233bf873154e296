import torch


@torch.cuda.device(0)  # >> CM201
def f():
    pass
