import torch.distributed as dist

if dist.get_backend() == "nccl":  # >> CM301
    pass
