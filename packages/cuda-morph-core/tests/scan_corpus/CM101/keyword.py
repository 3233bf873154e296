import torch

x = torch.zeros(3, device="cuda")  # >> CM101
y = torch.zeros(3, device="cuda:1")  # >> CM101
