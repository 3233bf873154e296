import torch

torch._C._set_grad_enabled(True)
