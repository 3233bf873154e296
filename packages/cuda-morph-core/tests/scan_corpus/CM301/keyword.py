import torch

torch.distributed.init_process_group(backend="nccl", rank=0)  # >> CM301
