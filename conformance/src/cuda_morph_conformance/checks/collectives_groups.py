"""Process groups: every spelling that CUDA programs use starts the accelerator's own backend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuda_morph_conformance.rank_pool import SIZE, on_ranks
from cuda_morph_conformance.registry import check, require
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from cuda_morph_conformance.rank import World
    from cuda_morph_conformance.subject import Subject


def _reduces(world: World, what: str, group: Any = None, device: str = "cuda") -> None:
    import torch
    import torch.distributed as dist

    place = world.device if device == "cuda" else torch.device(device)
    tensor = torch.full((4,), 2.0 + world.rank, device=place)
    dist.all_reduce(tensor, group=group)
    found = tensor.tolist()
    require(found == [5.0] * 4, f"{what}: the sum of 2 and 3 is {found[0]} on {device}")


@on_ranks("CM-DIST-001", requires=("dist.init",), bare=True)
def a_group_can_be_started(world: World) -> None:
    """``init_process_group("nccl")`` MUST start a group that knows its ranks, and again later.

    Fix: register the backend with ``torch.distributed.Backend.register_backend`` for the device
    type, and let ``destroy_process_group`` free what the first group held.
    """
    import torch.distributed as dist

    for attempt in range(2):
        world.join("nccl")
        require(dist.is_initialized(), "is_initialized() is False")
        require(dist.get_rank() == world.rank, f"get_rank() is {dist.get_rank()}")
        require(dist.get_world_size() == world.size, f"the size is {dist.get_world_size()}")
        _reduces(world, f"group {attempt + 1}")
        dist.destroy_process_group()
        require(not dist.is_initialized(), "is_initialized() is True after the end")


@on_ranks("CM-DIST-002", requires=("dist.nccl_name",), bare=True)
def the_name_nccl_is_understood(world: World) -> None:
    """A group that was asked for as ``nccl`` MUST run on the accelerator's own backend.

    In the cuda view it also says that it is NCCL; in the native view it says what it is.

    Fix: return a ``CollectiveBackend`` with the name that the adapter registers, and list the
    device type in ``device_types``.
    """
    import torch
    import torch.distributed as dist

    world.join("NCCL")
    _reduces(world, "nccl")
    own = world.subject.backend().collective_backend
    group = dist.group.WORLD
    running = group._get_backend(torch.device("cuda")).name()
    require(running == own, f"the group runs on {running!r}, Backend says {own!r}")
    said = dist.get_backend()
    wanted = "nccl" if world.subject.view == "cuda" else own
    require(said == wanted, f"get_backend() is {said!r} in the {world.subject.view} view")
    if world.subject.view == "cuda":
        require(dist.is_nccl_available(), "is_nccl_available() is False")


@on_ranks("CM-DIST-003", requires=("dist.nccl_name",), bare=True)
def two_backends_in_one_group(world: World) -> None:
    """``init_process_group("cpu:gloo,cuda:nccl")`` MUST reduce tensors of both devices.

    Fix: register the backend for its own device type only, so that gloo keeps the CPU.
    """
    world.join("cpu:gloo,cuda:nccl")
    _reduces(world, "cpu:gloo,cuda:nccl")
    _reduces(world, "cpu:gloo,cuda:nccl", device="cpu")


@on_ranks("CM-DIST-004", requires=("dist.init",), bare=True)
def a_group_without_a_name(world: World) -> None:
    """``init_process_group()`` without a backend MUST start the accelerator's own.

    Fix: give the device type a default backend, by ``register_backend(..., devices=[TYPE])``.
    """
    import torch

    world.join()
    _reduces(world, "no name")
    model = torch.nn.parallel.DistributedDataParallel(
        torch.nn.Linear(2, 1, bias=False).to(world.device), device_ids=[world.rank]
    )
    inputs = world.full(2 * world.rank, 1, 2)
    model(inputs).sum().backward()
    found = next(model.parameters()).grad.tolist()
    require(found == [[1.0, 1.0]], f"data-parallel gradients are {found}, not 1")


@on_ranks("CM-DIST-005", requires=("dist.device_id",), bare=True)
def a_group_bound_to_a_device(world: World) -> None:
    """``init_process_group(device_id=...)`` MUST bind the group to that CUDA device.

    Fix: accept ``device_id``; a backend that cannot connect early may ignore it.
    """
    import torch.distributed as dist

    world.join("nccl", device_id=world.device)
    _reduces(world, "device_id")
    dist.barrier()
    bound = dist.group.WORLD.bound_device_id
    require(bound == world.device, f"the group is bound to {bound}, expected {world.device}")


@on_ranks("CM-DIST-029", requires=("dist.init", "dist.subgroups"))
def later_groups_of_every_name(world: World) -> None:
    """``new_group`` MUST take ``nccl``, ``gloo`` for CPU tensors, and no name at all.

    Fix: let groups be created again in one process, beside gloo.
    """
    import torch.distributed as dist

    _reduces(world, "new_group()", dist.new_group())
    _reduces(world, "new_group('nccl')", dist.new_group(backend="nccl"))
    _reduces(world, "new_group('gloo')", dist.new_group(backend="gloo"), "cpu")


_SCRIPT = """
import os
import torch
import torch.distributed as dist

local = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
dist.init_process_group("nccl")
torch.manual_seed(0)
model = torch.nn.Linear(3, 1).cuda()
model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[local])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    inputs = torch.full((2, 3), 1.0 + dist.get_rank(), device="cuda")
    loss = (model(inputs) - step).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
total = loss.detach()
dist.all_reduce(total)
if dist.get_rank() == 0:
    print(f"total {total.item():.6f} of {dist.get_world_size()}")
dist.destroy_process_group()
"""


@check(
    "CM-DIST-030",
    level=Level.SCALES,
    requires=("dist.launch",),
    since="1.0",
    devices=SIZE,
)
def torchrun_starts_active_ranks(subject: Subject) -> None:
    """An unmodified CUDA script under ``torchrun`` MUST train on one device per rank.

    Fix: let child processes inherit the activation; see CUDA_MORPH_INHERIT in the guide.
    """
    done = subject.run_program(_SCRIPT, ranks=SIZE, timeout=50)
    last = (done.stderr.strip().splitlines() or ["no output"])[-1]
    require(done.returncode == 0, f"it ended with exit code {done.returncode}: {last}")
    expected = f"total {_reference():.6f} of {SIZE}"
    require(expected in done.stdout, f"it printed {done.stdout.strip()!r}, expected {expected!r}")


def _reference() -> float:
    """Trains the script's model in one process on the CPU and returns the last summed loss."""
    import torch

    from cuda_morph_conformance.models import undisturbed

    with undisturbed():
        torch.default_generator.manual_seed(0)
        model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    total = 0.0
    for step in range(3):
        losses = [
            (model(torch.full((2, 3), 1.0 + rank)) - step).square().mean() for rank in range(SIZE)
        ]
        optimizer.zero_grad()
        (sum(losses) / SIZE).backward()
        optimizer.step()
        total = sum(loss.item() for loss in losses)
    return total
