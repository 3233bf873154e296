import torch

with torch.autograd.profiler.profile(use_cuda=True) as p:  # >> CM209
    pass
print(p.key_averages().table(sort_by="cuda_time_total"))  # >> CM209
