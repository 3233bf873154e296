import torch

x = torch.zeros(3, device="cpu").to("cpu")
device = "mps"
