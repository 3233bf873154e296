import torch

torch.cuda.synchronize()  # >> CM201
n = torch.cuda.device_count()  # >> CM201
