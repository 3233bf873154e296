import torch

torch.cuda.synchronize()  # noqa: CM201
x = torch.zeros(2, device="cuda").cuda()  # noqa: CM101 # >> CM102
torch.cuda.empty_cache()  # noqa
torch.cuda.ipc_collect()  # noqa: E501 # >> CM201
