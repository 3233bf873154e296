"""PyTorch-Ignite: two processes with the nccl backend, model wrapped for data-parallel training."""

import ignite.distributed as idist
import torch
from ignite.engine import create_supervised_trainer


def run(rank, _config):
    device = idist.device()
    torch.manual_seed(rank)
    model = idist.auto_model(torch.nn.Linear(8, 2))
    optimizer = idist.auto_optim(torch.optim.SGD(model.parameters(), lr=0.1))
    data = [(torch.randn(16, 8), torch.randint(0, 2, (16,))) for _ in range(10)]
    trainer = create_supervised_trainer(
        model, optimizer, torch.nn.functional.cross_entropy, device=device
    )
    trainer.run(data, max_epochs=2)
    ranks = idist.all_reduce(torch.ones(1, device=device)).item()
    weight = model.module.weight.detach()
    same = torch.equal(weight, idist.broadcast(weight.clone(), src=0))
    print(f"rank {rank} on {device}: {ranks:.0f} ranks, same weights: {same}", flush=True)


if __name__ == "__main__":
    with idist.Parallel(backend="nccl", nproc_per_node=2) as parallel:
        parallel.run(run, {})
