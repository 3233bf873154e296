import torch

print(torch.cuda.nccl.version())  # >> CM302
