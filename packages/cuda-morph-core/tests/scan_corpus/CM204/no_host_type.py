import torch

x = torch.FloatTensor(3)
torch.set_default_tensor_type("torch.FloatTensor")
