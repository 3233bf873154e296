import torch.distributed as dist

ok = dist.is_nccl_available()  # >> CM302
