import torch.distributed as dist

group = dist.new_group([0, 1], backend="nccl")  # >> CM301
