"""FairScale's FullyShardedDataParallel, whose streams and checks are written for CUDA."""

import tempfile

import torch
import torch.distributed as dist
from fairscale.nn import FullyShardedDataParallel

with tempfile.NamedTemporaryFile() as rendezvous:
    dist.init_process_group("nccl", init_method=f"file://{rendezvous.name}", rank=0, world_size=1)
    torch.manual_seed(0)
    layers = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    model = FullyShardedDataParallel(layers.cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    batch = torch.randn(16, 8).cuda()
    losses = []
    for _ in range(10):
        loss = (model(batch) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print("sharded on", loss.device)
    print("loss fell:", losses[-1] < losses[0])
    dist.destroy_process_group()
