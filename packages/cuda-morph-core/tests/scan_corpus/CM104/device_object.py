import torch


def f(x):
    return x.device == torch.device("cuda:0")  # >> CM101
