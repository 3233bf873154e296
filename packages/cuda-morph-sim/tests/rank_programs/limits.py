"""A backend with the limits of a vendor's library."""

import pytest
import torch
import torch.distributed as dist
from start import run, start

from cuda_morph_sim import process_group


def refused(call, *words):
    with pytest.raises(RuntimeError) as refusal:
        call()
    assert all(word in str(refusal.value) for word in words), str(refusal.value)


def work(rank, store):
    device = start(rank, store, "simccl")
    process_group.register(
        "tinyccl",
        "sim",
        ops=("all_reduce", "broadcast", "sum", "max"),
        dtypes=("float32", "float64:float32"),
    )
    assert dist.Backend.default_device_backend_map["sim"] == "simccl"
    tiny = dist.new_group(backend="tinyccl")
    ones = torch.ones(2, device=device)
    refused(lambda: dist.all_reduce(ones, dist.ReduceOp.AVG, group=tiny), "AVG", "TINYCCL")
    refused(lambda: dist.all_reduce(ones.half(), group=tiny), "TINYCCL", "Half")
    refused(lambda: dist.reduce(ones, 0, group=tiny), "tinyccl does not support reduce")
    dist.all_reduce(ones, group=tiny)
    assert ones.tolist() == [2, 2]
    thirds = torch.full((2,), 1 / 3 + rank, dtype=torch.float64, device=device)
    dist.all_reduce(thirds, group=tiny)
    assert thirds.dtype is torch.float64
    narrow = (torch.tensor(1 / 3) + torch.tensor(4 / 3)).item()
    assert thirds.tolist() == [narrow] * 2
    assert narrow != 1 / 3 + 4 / 3
    process_group.register("noavgccl", "sim", ops=("-avg",))
    averageless = dist.new_group(backend="noavgccl")
    refused(lambda: dist.all_reduce(ones, dist.ReduceOp.AVG, group=averageless), "AVG", "NOAVGCCL")
    dist.all_reduce(ones, dist.ReduceOp.MAX, group=averageless)
    dist.barrier(device_ids=[rank])
    dist.destroy_process_group()


if __name__ == "__main__":
    run(work)
