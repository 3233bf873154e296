import torch

torch.set_default_tensor_type("torch.cuda.FloatTensor")  # >> CM204
y = torch.ones(2).type("torch.cuda.HalfTensor")  # >> CM204
