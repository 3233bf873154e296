import torch


def call(name):
    return getattr(torch.cuda, name)()  # >> CM905, CM201
