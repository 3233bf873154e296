import torch

if hasattr(torch._C, "_cuda_getDeviceCount"):
    n = torch._C._cuda_getDeviceCount()  # >> CM203
