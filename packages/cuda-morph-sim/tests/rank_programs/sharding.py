"""Data parallel and sharded training give the gradients of one process."""

import torch
from start import SIZE, run, start
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))


def data(rank):
    return torch.linspace(-1, 1 + rank, 12).reshape(3, 4)


def expected():
    alone = model()
    sum(alone(data(rank)).square().mean() for rank in range(SIZE)).div(SIZE).backward()
    return [parameter.grad for parameter in alone.parameters()]


def same(parameters):
    for parameter, wanted in zip(parameters, expected(), strict=True):
        grad = parameter.grad
        full = grad.full_tensor() if hasattr(grad, "full_tensor") else grad
        torch.testing.assert_close(full.cpu(), wanted)


def work(rank, store):
    device = start(rank, store, "simccl")
    for buckets in (False, True):
        parallel = torch.nn.parallel.DistributedDataParallel(
            model().to(device), device_ids=[rank], gradient_as_bucket_view=buckets
        )
        parallel(data(rank).to(device)).square().mean().backward()
        same(parallel.parameters())
    sharded = model().to(device)
    fully_shard(sharded, mesh=init_device_mesh("sim", (SIZE,)))
    sharded(data(rank).to(device)).square().mean().backward()
    same(sharded.parameters())
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    run(work)
