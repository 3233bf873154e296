"""Every collective with the device's tensors; each rank brings its own values."""

import pytest
import torch
import torch.distributed as dist
from start import run, start
from torch.distributed.distributed_c10d import _coalescing_manager

MOVED = (torch.bool, torch.int16, torch.complex64, torch.float8_e4m3fn, torch.bfloat16)
REDUCED = (torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int32, torch.uint8)


def reductions(rank, device):
    tensor = torch.full((3,), rank + 1.0, device=device)
    dist.all_reduce(tensor)
    assert tensor.tolist() == [3] * 3
    assert tensor.device == torch.device(device)
    dist.all_reduce(tensor.fill_(rank), dist.ReduceOp.AVG)
    assert tensor.tolist() == [0.5] * 3
    dist.all_reduce(tensor.fill_(rank + 1), dist._make_nccl_premul_sum(10.0))
    assert tensor.tolist() == [30] * 3
    for dtype in REDUCED:
        tensor = torch.full((4,), rank + 1, dtype=dtype, device=device)
        dist.all_reduce(tensor)
        assert tensor.tolist() == [3] * 4, dtype
    flags = torch.tensor([rank == 0, False], device=device)
    dist.all_reduce(flags)
    assert flags.tolist() == [True, False]
    tensor = torch.full((2,), rank + 1.0, device=device)
    dist.reduce(tensor, 1, op=dist.ReduceOp.AVG)
    assert tensor.tolist() == ([1.5] * 2 if rank == 1 else [1] * 2)
    part = torch.zeros(2, device=device)
    dist.reduce_scatter_tensor(part, torch.arange(4.0, device=device) * (rank + 1))
    assert part.tolist() == ([0, 3] if rank == 0 else [6, 9])
    whole = [torch.full((2,), 10.0**i * (rank + 1), device=device) for i in range(2)]
    dist.reduce_scatter(part, whole, op=dist.ReduceOp.AVG)
    assert part.tolist() == [1.5 * 10**rank] * 2
    assert whole[0].tolist() == [rank + 1] * 2


def movements(rank, device):
    for dtype in MOVED:
        tensor = torch.full((4,), rank, device=device).to(dtype)
        parts = [torch.empty(4, dtype=dtype, device=device) for _ in range(2)]
        dist.all_gather(parts, tensor)
        assert [part.cpu().to(torch.float32)[0].item() for part in parts] == [0, 1], dtype
        dist.broadcast(tensor, 1)
        assert tensor.cpu().to(torch.float32).tolist() == [1] * 4, dtype
    whole = torch.zeros(4, device=device)
    dist.all_gather_into_tensor(whole, torch.full((2,), float(rank), device=device))
    assert whole.tolist() == [0, 0, 1, 1]
    parts = [torch.zeros(2, device=device) for _ in range(2)] if rank == 0 else None
    dist.gather(torch.full((2,), rank + 5.0, device=device), parts, 0)
    assert rank == 1 or [part[0].item() for part in parts] == [5, 6]
    part = torch.zeros(2, device=device)
    dist.scatter(part, [part + 7, part + 8] if rank == 1 else None, 1)
    assert part.tolist() == [7 + rank] * 2
    dist.all_to_all_single(whole, torch.arange(4.0, device=device) + 10 * rank)
    assert whole.tolist() == ([0, 1, 10, 11] if rank == 0 else [2, 3, 12, 13])
    uneven = torch.zeros(3, device=device)
    sizes = [1, 2] if rank == 0 else [2, 1]
    dist.all_to_all_single(uneven, torch.arange(3.0, device=device) + 10 * rank, sizes, sizes)
    assert uneven.tolist() == ([0, 10, 11] if rank == 0 else [1, 2, 12])
    parts = [torch.zeros(2, device=device) for _ in range(2)]
    dist.all_to_all(parts, [torch.full((2,), rank * 10.0 + i, device=device) for i in range(2)])
    assert [part[0].item() for part in parts] == [rank, 10 + rank]


def messages(rank, device):
    tensor = torch.full((2,), 3.0 - rank, device=device)
    if rank == 0:
        dist.send(tensor, 1)
        dist.isend(tensor, 1).wait()
        dist.send(tensor, 1)
    else:
        dist.recv(tensor, 0)
        assert tensor.tolist() == [3, 3]
        handle = dist.irecv(tensor.zero_(), 0)
        while not handle.is_completed():
            pass
        assert tensor.tolist() == [3, 3]
        assert handle.get_future().wait()[0].device == tensor.device
        assert dist.recv(tensor.zero_()) == 0
        assert tensor.tolist() == [3, 3]
    got = torch.zeros(2, device=device)
    batch = [
        dist.P2POp(dist.isend, torch.full((2,), rank + 1.0, device=device), 1 - rank),
        dist.P2POp(dist.irecv, got, 1 - rank),
    ]
    works = dist.batch_isend_irecv(batch)
    assert len(works) == 1, "a group that coalesces gives one handle"
    works[0].wait()
    assert got.tolist() == [2 - rank] * 2


def handles(rank, device):
    tensor = torch.full((2,), rank + 1.0, device=device)
    work = dist.all_reduce(tensor, dist.ReduceOp.AVG, async_op=True)
    seen = work.get_future().then(lambda future: future.value()[0].clone()).wait()
    assert work.wait()
    assert work.is_completed()
    assert work.is_success()
    assert seen.tolist() == tensor.tolist() == [1.5] * 2
    assert seen.device == tensor.device
    assert work.result()[0].data_ptr() == tensor.data_ptr()
    tensors = [torch.full((2,), rank + 1.0, device=device) for _ in range(3)]
    with _coalescing_manager(device=torch.device(device)):
        for one in tensors:
            dist.all_reduce(one)
    assert all(one.tolist() == [3, 3] for one in tensors)
    wholes = [torch.zeros(4, device=device) for _ in range(3)]
    with _coalescing_manager(device=torch.device(device), async_ops=True) as batch:
        for one in wholes:
            dist.all_gather_into_tensor(one, torch.full((2,), rank + 1.0, device=device))
    batch.wait()
    assert all(one.tolist() == [1, 1, 2, 2] for one in wholes)
    with _coalescing_manager(device=torch.device(device)):
        for one in tensors:
            dist.reduce_scatter_tensor(one, torch.full((4,), rank + 1.0, device=device))
    assert all(one.tolist() == [3, 3] for one in tensors)


def objects(rank, device):
    every = [None, None]
    dist.all_gather_object(every, {"rank": rank})
    assert every == [{"rank": 0}, {"rank": 1}]
    one = [rank]
    dist.broadcast_object_list(one, 1)
    assert one == [1]
    dist.scatter_object_list(one, ["a", "b"] if rank == 0 else None, 0)
    assert one == ["ab"[rank]]
    gathered = [None, None] if rank == 0 else None
    dist.gather_object(rank, gathered, 0)
    assert gathered in (None, [0, 1])


def groups(rank, device):
    alone = dist.new_group([0])
    tensor = torch.ones(2, device=device)
    if rank == 0:
        dist.all_reduce(tensor, group=alone)
        assert tensor.tolist() == [1, 1]
    host = dist.new_group(backend="gloo")
    for one in (torch.ones(2, device=device), torch.ones(2)):
        dist.all_reduce(one, group=host)
        assert one.tolist() == [2, 2]
    dist.monitored_barrier(host)
    with pytest.raises(RuntimeError, match="No backend type associated with device type cpu"):
        dist.all_reduce(torch.ones(2))


def work(rank, store):
    device = start(rank, store, "simccl")
    assert dist.get_backend() == "simccl"
    assert dist.group.WORLD._get_backend(torch.device("sim")).name() == "simccl"
    for part in (reductions, movements, messages, handles, objects, groups):
        part(rank, device)
    dist.barrier(device_ids=[rank])
    dist.destroy_process_group()


if __name__ == "__main__":
    run(work)
