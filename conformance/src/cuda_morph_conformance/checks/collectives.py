"""Collectives: each rank brings values of its own, so that a rank left out changes the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuda_morph_conformance.models import numbers
from cuda_morph_conformance.rank_pool import SIZE, on_ranks
from cuda_morph_conformance.registry import require
from cuda_morph_conformance.tolerances import require_close

if TYPE_CHECKING:
    from torch import Tensor

    from cuda_morph_conformance.rank import World

_MORE_DTYPES = ("float16", "bfloat16", "float64", "int32", "int64", "uint8")
"""Reduced if the plugin claims them."""

_LATE = 0.4
"""Seconds by which one rank comes later to a barrier."""


def _values(rank: int, *shape: int) -> Tensor:
    return numbers(*(shape or (5, 3)), seed=40 + rank)


def _all(*shape: int) -> list[Tensor]:
    return [_values(rank, *shape) for rank in range(SIZE)]


def _mine(world: World, *shape: int) -> Tensor:
    return _values(world.rank, *shape).to(world.device)


def _blank(world: World, *shape: int, dtype: Any = None) -> Tensor:
    """Returns room for a result, filled with what no result contains."""
    return world.full(-77, *(shape or (5, 3)), dtype=dtype)


def _same(seen: Tensor, expected: Tensor, what: str, world: World) -> None:
    require(seen.device == world.device, f"{what}: on {seen.device}, expected {world.device}")
    require_close(seen, expected, what)


@on_ranks("CM-DIST-006", requires=("dist.broadcast",))
def broadcast_gives_the_roots_tensor(world: World) -> None:
    """After ``broadcast``, every rank MUST hold the root's tensor, whichever rank is the root.

    Fix: pass the root's rank within the group on to the library.
    """
    import torch.distributed as dist

    for root in range(world.size):
        tensor = _mine(world)
        dist.broadcast(tensor, root)
        _same(tensor, _values(root), f"broadcast from rank {root}", world)


@on_ranks("CM-DIST-007", requires=("dist.all_reduce",))
def all_reduce_sums(world: World) -> None:
    """``all_reduce`` MUST give every rank the sum over all ranks, in place.

    Fix: reduce over all ranks of the group, and write into the tensor that was passed.
    """
    import torch.distributed as dist

    tensor = _mine(world)
    address = tensor.data_ptr()
    dist.all_reduce(tensor)
    _same(tensor, sum(_all()), "sum", world)
    require(tensor.data_ptr() == address, "the result is in another place")


@on_ranks("CM-DIST-008", requires=("dist.all_reduce",))
def all_reduce_of_every_claimed_dtype(world: World) -> None:
    """``all_reduce`` MUST sum tensors of every dtype that the plugin claims.

    Fix: map the dtype onto the library's, or claim ``dtype.NAME`` as partial and list what the
    library takes in ``CollectiveBackend(dtypes=...)``.
    """
    import torch
    import torch.distributed as dist

    taken = _collective_dtypes(world)
    for name in _MORE_DTYPES:
        claimed = world.subject.claims[f"dtype.{name}"].value in {"full", "emulated"}
        if not claimed or (taken and name not in taken):
            continue
        tensor = world.full(world.rank + 3, 6, dtype=getattr(torch, name))
        dist.all_reduce(tensor)
        _same(tensor, torch.full((6,), 7, dtype=tensor.dtype), name, world)


@on_ranks("CM-DIST-031", requires=("dist.all_reduce", "dtype.float64"))
def all_reduce_keeps_double_precision(world: World) -> None:
    """``all_reduce`` MUST sum float64 in double precision, unless the plugin's records say less.

    Fix: reduce float64 as such, or list ``CollectiveBackend(dtypes=...)`` with ``float64:float32``
    or without float64.
    """
    import torch
    import torch.distributed as dist

    listed = _listed_dtypes(world)
    if listed and "float64" not in listed:
        return
    small = 2.0**-40
    tensor = world.full(1 + small, 6, dtype=torch.float64)
    dist.all_reduce(tensor)
    lost = float((tensor - world.full(2, 6, dtype=torch.float64)).min())
    require(lost == 2 * small, f"two times 1 + {small:g} is 2 + {lost:g}")


def _collective_dtypes(world: World) -> set[str]:
    return {listed.partition(":")[0] for listed in _listed_dtypes(world)}


def _listed_dtypes(world: World) -> list[str]:
    hook = "cuda_morph_collectives"
    records = world.subject.call(hook) if world.subject.implements(hook) else ()
    own = world.subject.backend().collective_backend
    return [dtype for record in records if record.name == own for dtype in record.dtypes]


@on_ranks("CM-DIST-009", requires=("dist.all_reduce",))
def all_reduce_finds_extremes(world: World) -> None:
    """``all_reduce`` with ``MAX`` and ``MIN`` MUST give every rank the extremes over all ranks.

    Fix: map ``ReduceOp.MAX`` and ``ReduceOp.MIN`` onto the library's reductions.
    """
    import torch
    import torch.distributed as dist

    for operation, reference in (("MAX", torch.amax), ("MIN", torch.amin)):
        tensor = _mine(world)
        dist.all_reduce(tensor, getattr(dist.ReduceOp, operation))
        _same(tensor, reference(torch.stack(_all()), 0), operation, world)


@on_ranks("CM-DIST-010", requires=("dist.reduce",))
def reduce_gives_the_root_the_sum(world: World) -> None:
    """``reduce`` MUST give the root the sum over all ranks, whichever rank is the root.

    Fix: pass the root's rank within the group on to the library.
    """
    import torch.distributed as dist

    for root in range(world.size):
        tensor = _mine(world)
        dist.reduce(tensor, root)
        if world.rank == root:
            _same(tensor, sum(_all()), f"sum on rank {root}", world)


@on_ranks("CM-DIST-011", requires=("dist.all_gather",))
def all_gather_gives_every_tensor(world: World) -> None:
    """``all_gather`` MUST give every rank the tensors of all ranks, in the order of ranks.

    Fix: write the part of rank i into the i-th tensor of the list.
    """
    import torch.distributed as dist

    parts = [_blank(world) for _ in range(world.size)]
    dist.all_gather(parts, _mine(world))
    for rank, part in enumerate(parts):
        _same(part, _values(rank), f"part of rank {rank}", world)


@on_ranks("CM-DIST-012", requires=("dist.all_gather",))
def all_gather_into_one_tensor(world: World) -> None:
    """``all_gather_into_tensor`` MUST give every rank all parts in one tensor.

    Fix: implement ``_allgather_base`` of the process group; sharded training rests on it.
    """
    import torch
    import torch.distributed as dist

    whole = _blank(world, 10, 3)
    dist.all_gather_into_tensor(whole, _mine(world))
    _same(whole, torch.cat(_all()), "all parts", world)


@on_ranks("CM-DIST-013", requires=("dist.reduce_scatter",))
def reduce_scatter_of_a_list(world: World) -> None:
    """``reduce_scatter`` MUST give every rank the sum of the parts meant for it.

    Fix: implement ``reduce_scatter`` of the process group.
    """
    import torch.distributed as dist

    part = _blank(world)
    mine = [numbers(5, 3, seed=60 + 10 * world.rank + to) for to in range(world.size)]
    dist.reduce_scatter(part, [one.to(world.device) for one in mine])
    expected = [numbers(5, 3, seed=60 + 10 * rank + world.rank) for rank in range(world.size)]
    _same(part, sum(expected), "sum of the parts", world)


@on_ranks("CM-DIST-014", requires=("dist.reduce_scatter",))
def reduce_scatter_of_one_tensor(world: World) -> None:
    """``reduce_scatter_tensor`` MUST give every rank its slice of the sum.

    Fix: implement ``_reduce_scatter_base`` of the process group; sharded training rests on it.
    """
    import torch.distributed as dist

    part = _blank(world, 4, 3)
    dist.reduce_scatter_tensor(part, _mine(world, 8, 3))
    _same(part, sum(_all(8, 3)).chunk(world.size)[world.rank], "slice of the sum", world)


@on_ranks("CM-DIST-015", requires=("dist.gather",))
def gather_gives_the_root_every_tensor(world: World) -> None:
    """``gather`` MUST give the root the tensors of all ranks, in the order of ranks.

    Fix: implement ``gather`` of the process group; sends and receives to the root are enough.
    """
    import torch.distributed as dist

    for root in range(world.size):
        parts = [_blank(world) for _ in range(world.size)] if world.rank == root else None
        dist.gather(_mine(world), parts, dst=root)
        for rank, part in enumerate(parts or ()):
            _same(part, _values(rank), f"part of rank {rank} on rank {root}", world)


@on_ranks("CM-DIST-016", requires=("dist.scatter",))
def scatter_gives_every_rank_its_part(world: World) -> None:
    """``scatter`` MUST give every rank the tensor that the root meant for it.

    Fix: implement ``scatter`` of the process group; sends and receives from the root are enough.
    """
    import torch.distributed as dist

    for root in range(world.size):
        part = _blank(world)
        parts = [one.to(world.device) for one in _all()] if world.rank == root else None
        dist.scatter(part, parts, src=root)
        _same(part, _values(world.rank), f"part from rank {root}", world)


@on_ranks("CM-DIST-017", requires=("dist.all_to_all",))
def all_to_all_of_one_tensor(world: World) -> None:
    """``all_to_all_single`` MUST exchange the slices of all ranks, also of unequal sizes.

    Fix: implement ``alltoall_base`` of the process group; mixtures of experts rest on it.
    """
    import torch
    import torch.distributed as dist

    whole = _blank(world, 4, 3)
    dist.all_to_all_single(whole, _mine(world, 4, 3))
    expected = torch.cat([one.chunk(world.size)[world.rank] for one in _all(4, 3)])
    _same(whole, expected, "equal slices", world)
    sizes = [1, 3] if world.rank == 0 else [3, 1]
    dist.all_to_all_single(whole, _mine(world, 4, 3), sizes, sizes)
    first, second = _all(4, 3)
    expected = torch.cat([first[:1], second[:3]] if world.rank == 0 else [first[1:], second[3:]])
    _same(whole, expected, "unequal slices", world)


@on_ranks("CM-DIST-018", requires=("dist.all_to_all",))
def all_to_all_of_lists(world: World) -> None:
    """``all_to_all`` MUST give every rank the tensors that the others meant for it.

    Fix: implement ``alltoall`` of the process group.
    """
    import torch.distributed as dist

    parts = [_blank(world) for _ in range(world.size)]
    mine = [numbers(5, 3, seed=80 + 10 * world.rank + to) for to in range(world.size)]
    dist.all_to_all(parts, [one.to(world.device) for one in mine])
    for rank, part in enumerate(parts):
        expected = numbers(5, 3, seed=80 + 10 * rank + world.rank)
        _same(part, expected, f"part of rank {rank}", world)


@on_ranks("CM-DIST-019", requires=("dist.send_recv",))
def send_reaches_recv(world: World) -> None:
    """A tensor that one rank sends MUST arrive unchanged at the rank that receives it.

    Fix: implement ``send`` and ``recv`` of the process group.
    """
    import torch.distributed as dist

    for source in range(world.size):
        if world.rank == source:
            dist.send(_mine(world), world.other)
        else:
            tensor = _blank(world)
            dist.recv(tensor, source)
            _same(tensor, _values(source), f"from rank {source}", world)


@on_ranks("CM-DIST-020", requires=("dist.send_recv",))
def ranks_exchange_in_a_batch(world: World) -> None:
    """``batch_isend_irecv`` MUST let two ranks send to each other at once without a deadlock.

    Fix: start the operations of a batch together, as NCCL does between group start and end.
    """
    import torch.distributed as dist

    got = _blank(world)
    works = dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, _mine(world), world.other),
            dist.P2POp(dist.irecv, got, world.other),
        ]
    )
    for work in works:
        work.wait()
    _same(got, _values(world.other), "from the other rank", world)


@on_ranks("CM-DIST-021", requires=("dist.barrier",))
def barrier_holds_until_all_are_there(world: World) -> None:
    """``barrier`` MUST hold every rank until the last one has come.

    Fix: wait in ``barrier`` until the device has finished the collective that it is made of.
    """
    import time

    import torch
    import torch.distributed as dist

    dist.barrier(device_ids=[world.rank])
    begin = time.monotonic()
    if world.rank == 1:
        time.sleep(_LATE)
    dist.barrier(device_ids=[world.rank])
    torch.cuda.synchronize()
    waited = time.monotonic() - begin
    # A quarter less: the ranks leave the first barrier at slightly different times.
    require(waited > 0.75 * _LATE, f"it let go after {waited:.2f} s; a rank came after {_LATE} s")


@on_ranks("CM-DIST-022", requires=("dist.objects",))
def objects_travel(world: World) -> None:
    """The collectives of Python objects MUST hand over equal objects.

    Fix: they are made of collectives of bytes; make ``broadcast``, ``all_gather``, ``gather`` and
    ``scatter`` take uint8 and int64 tensors on the device.
    """
    import torch.distributed as dist

    mine = {"rank": world.rank, "text": "x" * (10 + 90 * world.rank)}
    every: list[Any] = [None] * world.size
    dist.all_gather_object(every, mine)
    require([one["rank"] for one in every] == [0, 1], f"all_gather_object gave {every}")
    require(every[world.rank] == mine, f"all_gather_object changed {mine}")
    one: list[Any] = [mine]
    dist.broadcast_object_list(one, src=1)
    require(one[0]["rank"] == 1, f"broadcast_object_list gave {one}")
    gathered: list[Any] | None = [None] * world.size if world.rank == 0 else None
    dist.gather_object(mine, gathered, dst=0)
    require(gathered in (None, every), f"gather_object gave {gathered}")
    dist.scatter_object_list(one, ["a", "b"] if world.rank == 0 else None, src=0)
    require(one == ["ab"[world.rank]], f"scatter_object_list gave {one}")


@on_ranks("CM-DIST-023", requires=("dist.async_op",))
def handles_can_be_waited_for(world: World) -> None:
    """With ``async_op=True`` a collective MUST give a handle, and its result after ``wait``.

    Fix: return a ``Work`` whose ``wait`` orders later work behind the collective, and which says
    ``is_completed`` once the device is done.
    """
    import torch
    import torch.distributed as dist

    tensors = [_mine(world) * (step + 1) for step in range(4)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for step, (work, tensor) in enumerate(zip(works, tensors, strict=True)):
        require(work is not None, "all_reduce(async_op=True) gave no handle")
        work.wait()
        _same(tensor, sum(_all()) * (step + 1), f"collective {step}", world)
    torch.cuda.synchronize()
    require(all(work.is_completed() for work in works), "is_completed() is False after all is done")


@on_ranks("CM-DIST-024", requires=("dist.async_op",))
def futures_give_the_result(world: World) -> None:
    """The future of a handle MUST give the reduced tensor, also to a callback.

    Fix: return from ``Work.get_future`` a future that completes with the outputs; communication
    hooks of data-parallel training rest on it.
    """
    import torch.distributed as dist

    work = dist.all_reduce(_mine(world), async_op=True)
    doubled = work.get_future().then(lambda future: _first(future.value()) * 2).wait()
    _same(doubled, 2 * sum(_all()), "twice the sum", world)


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list | tuple) else value


@on_ranks("CM-DIST-025", requires=("dist.coalesced",))
def coalesced_collectives_give_each_result(world: World) -> None:
    """Collectives that are coalesced MUST each give the result they give alone.

    Fix: implement ``startCoalescing`` and ``endCoalescing`` of the process group.
    """
    import torch
    import torch.distributed as dist
    from torch.distributed.distributed_c10d import _coalescing_manager

    sums = [_mine(world) * (step + 1) for step in range(3)]
    with _coalescing_manager(device=world.device):
        for tensor in sums:
            dist.all_reduce(tensor)
    wholes = [_blank(world, 10, 3) for _ in range(3)]
    with _coalescing_manager(device=world.device, async_ops=True) as batch:
        for step, whole in enumerate(wholes):
            dist.all_gather_into_tensor(whole, _mine(world) * (step + 1))
    batch.wait()
    for step in range(3):
        _same(sums[step], sum(_all()) * (step + 1), f"all_reduce {step}", world)
        _same(wholes[step], torch.cat(_all()) * (step + 1), f"all_gather {step}", world)


@on_ranks("CM-DIST-026", requires=("dist.subgroups",))
def subgroups_keep_to_themselves(world: World) -> None:
    """A collective of a group MUST reach the ranks of the group, and no others.

    Fix: make a communicator per group, from the ranks that ``new_group`` was called with.
    """
    import torch.distributed as dist

    alone = [dist.new_group([rank]) for rank in range(world.size)]
    both = dist.new_group(list(range(world.size)))
    tensor = _mine(world)
    dist.all_reduce(tensor, group=alone[world.rank])
    _same(tensor, _values(world.rank), "group of one rank", world)
    dist.all_reduce(tensor, group=both)
    _same(tensor, sum(_all()), "group of all ranks", world)
    require(dist.get_world_size(alone[world.rank]) == 1, "a group of one rank has another size")


@on_ranks("CM-DIST-027", requires=("dist.device_mesh",))
def a_mesh_over_cuda(world: World) -> None:
    """``init_device_mesh("cuda", ...)`` MUST give groups for the accelerator's tensors.

    Fix: name a default backend for the device type, and let ``get_backend`` know it.
    """
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("cuda", (1, world.size), mesh_dim_names=("outer", "inner"))
    require(mesh["inner"].get_local_rank() == world.rank, "the mesh numbers ranks differently")
    tensor = _mine(world)
    dist.all_reduce(tensor, group=mesh["inner"].get_group())
    _same(tensor, sum(_all()), "along the mesh", world)
    dist.all_reduce(tensor, group=mesh["outer"].get_group())
    _same(tensor, sum(_all()), "across the mesh", world)


@on_ranks("CM-DIST-028", requires=("dist.all_reduce", "dist.all_gather"))
def functional_collectives_have_gradients(world: World) -> None:
    """Functional collectives MUST give new tensors, with gradients where PyTorch has them.

    Fix: register the ``_c10d_functional`` operators for the device; PyTorch's own implementation
    calls the process group.
    """
    import torch
    import torch.distributed as dist
    from torch.distributed import _functional_collectives as functional

    group = dist.group.WORLD
    mine = _mine(world).requires_grad_()
    _same(functional.all_reduce(mine.detach(), "sum", group), sum(_all()), "all_reduce", world)
    whole = functional.all_gather_tensor_autograd(mine, 0, group)
    _same(whole.detach(), torch.cat(_all()), "all_gather", world)
    weights = numbers(10, 3, seed=90 + world.rank)
    (whole * weights.to(world.device)).sum().backward()
    expected = sum(numbers(10, 3, seed=90 + r).chunk(2)[world.rank] for r in range(world.size))
    require(mine.grad is not None, "the gathered tensor gave no gradient")
    _same(mine.grad, expected, "gradient", world)
