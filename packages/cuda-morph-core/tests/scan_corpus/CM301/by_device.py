from torch.distributed import init_process_group

init_process_group("cpu:gloo,cuda:nccl")  # >> CM301
