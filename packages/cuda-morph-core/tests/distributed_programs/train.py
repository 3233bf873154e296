"""An ordinary CUDA training script for several cards; nothing in it knows of cuda-morph."""

import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--out", required=True)
options = parser.parse_args()

local = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
dist.init_process_group(backend="nccl")
torch.manual_seed(0)
data = TensorDataset(torch.randn(24, 6), torch.randint(3, (24,)))
sampler = DistributedSampler(data, shuffle=False)
loader = DataLoader(data, batch_size=4, sampler=sampler)
model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).cuda()
model = DistributedDataParallel(model, device_ids=[local], output_device=local)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, foreach=False)
losses = []
for epoch in range(2):
    sampler.set_epoch(epoch)
    for inputs, targets in loader:
        logits = model(inputs.cuda(non_blocking=True))
        loss = torch.nn.functional.cross_entropy(logits, targets.cuda(non_blocking=True))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total)
        losses.append(total.item() / dist.get_world_size())
dist.barrier()
if dist.get_rank() == 0:
    state = {name: tensor.cpu() for name, tensor in model.module.state_dict().items()}
    torch.save({"losses": losses, "state": state, "where": str(loss.device)}, options.out)
dist.destroy_process_group()
