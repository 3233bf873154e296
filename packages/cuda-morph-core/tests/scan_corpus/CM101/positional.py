import torch

d = torch.device("cuda")  # >> CM101
x = torch.ones(2).to("cuda:0")  # >> CM101
torch.set_default_device("cuda")  # >> CM101
