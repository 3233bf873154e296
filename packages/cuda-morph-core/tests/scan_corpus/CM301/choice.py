import torch

backend = "nccl" if torch.cuda.is_available() else "gloo"  # >> CM301, CM201
torch.distributed.init_process_group(backend)
