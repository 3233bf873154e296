import torch

cuda = torch.cuda  # >> CM201
cuda.empty_cache()  # >> CM201
