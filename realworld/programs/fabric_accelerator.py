"""Lightning Fabric with a CUDA accelerator and bfloat16 autocast."""

import torch
from lightning_fabric import Fabric

fabric = Fabric(accelerator="cuda", devices=1, precision="bf16-mixed")
fabric.launch()
fabric.seed_everything(0)
model = torch.nn.Linear(32, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = fabric.setup(model, optimizer)
batch = torch.randn(16, 32, device=fabric.device)
losses = []
for _ in range(20):
    loss = (model(batch).float() - 1).square().mean()
    optimizer.zero_grad()
    fabric.backward(loss)
    optimizer.step()
    losses.append(loss.item())
print("fabric on", fabric.device, "weights on", next(model.parameters()).device)
print("loss fell:", losses[-1] < losses[0])
