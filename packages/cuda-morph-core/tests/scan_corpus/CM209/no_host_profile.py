import torch

with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
    pass
