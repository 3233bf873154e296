import torch

print(torch.version.git_version, torch.__version__)
