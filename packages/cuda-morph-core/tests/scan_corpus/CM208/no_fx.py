import torch

g = torch.fx.Graph()
