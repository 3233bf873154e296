"""Averages on a library that has none; two ranks, and the plugin is the first argument."""

import os
import sys
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

import cuda_morph

plugin, folder, rank = sys.argv[1], sys.argv[2], int(os.environ["RANK"])
AVG = dist.ReduceOp.AVG
with cuda_morph.activate(plugin):
    torch.cuda.set_device(rank)
    meeting = {"init_method": f"file://{folder}/meeting", "rank": rank, "world_size": 2}
    dist.init_process_group("nccl", timeout=timedelta(seconds=60), **meeting)

    def own(*shape):
        return torch.full(shape, 2.0 + 2 * rank, device="cuda")

    tensor = own(3)
    dist.all_reduce(tensor, AVG)
    assert tensor.tolist() == [3] * 3
    work = dist.all_reduce(tensor := own(3), op=AVG, async_op=True)
    work.wait()
    assert tensor.tolist() == [3] * 3
    dist.all_reduce(tensor := own(3), AVG, dist.new_group(), False)
    assert tensor.tolist() == [3] * 3
    part, given = torch.zeros(2, device="cuda"), own(4)
    dist.reduce_scatter_tensor(part, given, AVG)
    assert part.tolist() == [3] * 2
    assert given.tolist() == own(4).tolist(), "the input was changed"
    dist.reduce_scatter(part.zero_(), [own(2), own(2)], op=AVG)
    assert part.tolist() == [3] * 2
    dist.reduce_scatter_tensor(part, own(4))
    assert part.tolist() == [6] * 2
    with pytest.raises(RuntimeError, match="AVG"):
        dist.all_reduce(torch.ones(2, dtype=torch.int64, device="cuda"), AVG)
    dist.destroy_process_group()
print("averages", flush=True)
