"""torchgpipe: one model cut over two GPUs, with copy streams between them."""

import torch
from torch import nn
from torchgpipe import GPipe

torch.manual_seed(0)
layers = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))
model = GPipe(layers, balance=[2, 3], chunks=4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batch = torch.randn(32, 16, device=model.devices[0])
losses = []
for _ in range(10):
    loss = (model(batch) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("pipeline over", *model.devices)
print("loss fell:", losses[-1] < losses[0])
