import torch

torch._C._cuda_getDeviceCount()  # >> CM203
