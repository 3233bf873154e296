"""Every way in which CUDA programs start groups; run by torchrun with two ranks."""

import itertools
import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

view, own, folder = sys.argv[1:]
numbers = itertools.count()
shown = "nccl" if view == "cuda" else own
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
device = torch.device("cuda", rank)


def total(group=None, where=device):
    tensor = torch.full((2,), rank + 1.0, device=where)
    dist.all_reduce(tensor, group=group)
    return tensor.tolist()


def start(*arguments, **options):
    """Starts a group under the name, tries it, and gives what it is called.

    Each has a meeting place of its own: gloo, on any device, finds the addresses of an earlier
    group in torchrun's.
    """
    meeting = f"file://{folder}/{next(numbers)}"
    options |= {"rank": rank, "world_size": 2, "init_method": meeting}
    dist.init_process_group(*arguments, **options)
    assert total() == [3, 3], (arguments, options)
    running = dist.group.WORLD._get_backend(torch.device("cuda")).name()
    assert running == own, (arguments, options, running)
    return dist.get_backend()


def end():
    dist.barrier(device_ids=[rank])
    dist.destroy_process_group()


assert start("nccl") == shown
assert (dist.get_backend() == dist.Backend.NCCL) is (view == "cuda")
assert dist.is_nccl_available() is (view == "cuda")
assert dist.get_default_backend_for_device("cuda") == own
for group, name in ((dist.new_group(), shown), (dist.new_group(backend="NCCL"), shown)):
    assert total(group) == [3, 3]
    assert dist.get_backend(group) == name
gloo = dist.new_group(backend="gloo")
assert total(gloo, "cpu") == [3, 3]
assert dist.get_backend(gloo) == "gloo"
mesh = init_device_mesh("cuda", (2,))
assert mesh.device_type == torch.zeros(1, device="cuda").device.type
assert total(mesh.get_group()) == [3, 3]
assert dist.get_backend(mesh.get_group()) == shown
spread = distribute_tensor(torch.arange(4.0, device="cuda"), mesh, [Shard(0)])
assert spread.full_tensor().tolist() == [0, 1, 2, 3]
end()

assert start(own) == own, "a group that was asked for by its own name says so"
end()
start("cpu:gloo,cuda:nccl")
assert total(where="cpu") == [3, 3]
end()
start(device_id=device)
assert dist.group.WORLD.bound_device_id == device
end()
start()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1).cuda(), device_ids=[rank])
model(torch.full((1, 2), float(rank), device="cuda")).sum().backward()
assert model.module.weight.grad.tolist() == [[0.5, 0.5]]
end()
if view == "cuda":
    fast = dist.ProcessGroupNCCL.Options(is_high_priority_stream=True)
    start("nccl", pg_options=fast)
    assert total(dist.new_group(backend="nccl", pg_options=fast)) == [3, 3]
    end()
sys.stdout.write(f"rank {rank}: all spellings\n")  # at once: two ranks share this output
sys.stdout.flush()
