"""Data-parallel training: several ranks with a part of the batch each train like one with all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuda_morph_conformance.models import (
    exact_products,
    gradients,
    integers,
    loss_of,
    mlp,
    numbers,
    snapshot,
)
from cuda_morph_conformance.rank_pool import SIZE, on_ranks
from cuda_morph_conformance.registry import require
from cuda_morph_conformance.tolerances import PRODUCT, STEPS, TRAINING, require_close

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor, nn

    from cuda_morph_conformance.rank import World

BATCH = 6


def part(rank: int, step: int = 0) -> tuple[Tensor, Tensor]:
    """Returns one rank's part of a batch, on the CPU; no two parts are alike."""
    seed = 500 + 10 * step + rank
    return numbers(BATCH, 16, seed=seed), integers(4, BATCH, seed=seed)


def parallel(world: World, model: nn.Module, **options: Any) -> nn.Module:
    """Returns a model wrapped for data-parallel training on the rank's device."""
    from torch.nn.parallel import DistributedDataParallel

    return DistributedDataParallel(model.to(world.device), device_ids=[world.rank], **options)


def backward(world: World, model: nn.Module, step: int = 0) -> None:
    """Runs forward and backward on the rank's own part."""
    inputs, targets = (one.to(world.device) for one in part(world.rank, step))
    with exact_products():
        loss_of(model(inputs), targets).backward()


def reference_gradients() -> dict[str, Tensor]:
    """Returns the gradients of one process with the whole batch, on the CPU."""
    model = mlp()
    (sum(loss_of(model(part(rank)[0]), part(rank)[1]) for rank in range(SIZE)) / SIZE).backward()
    return gradients(model)


def reference_state(make: Callable[[Any], Any], steps: int = STEPS) -> dict[str, Tensor]:
    """Returns the parameters after training in one process with the whole batch, on the CPU."""
    model = mlp()
    optimizer = make(model.parameters())
    for step in range(steps):
        optimizer.zero_grad()
        losses = [loss_of(model(part(r, step)[0]), part(r, step)[1]) for r in range(SIZE)]
        (sum(losses) / SIZE).backward()
        optimizer.step()
    return snapshot(model.state_dict())


def same(
    seen: dict[str, Tensor], expected: dict[str, Tensor], what: str, kind: str = PRODUCT
) -> None:
    """Fails unless two mappings of names to tensors agree."""
    require(seen.keys() == expected.keys(), f"{what}: {sorted(seen)} for {sorted(expected)}")
    for name, tensor in expected.items():
        require_close(seen[name], tensor, f"{what} {name}", kind=kind, dtype="float32")


def momentum(parameters: Any) -> Any:
    """Returns the optimiser of the training runs."""
    import torch

    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9)


@on_ranks("CM-DDP-001", requires=("dist.ddp",))
def gradients_are_averaged(world: World) -> None:
    """Data-parallel gradients MUST be those of one process that has the whole batch.

    Fix: check ``all_reduce`` of flat buckets first; the reducer divides by the number of ranks.
    """
    model = parallel(world, mlp())
    backward(world, model)
    same(gradients(model.module), reference_gradients(), "gradient of")


@on_ranks("CM-DDP-002", requires=("dist.ddp",))
def gradients_live_in_buckets(world: World) -> None:
    """With ``gradient_as_bucket_view`` and small buckets the gradients MUST be the same ones.

    Fix: reduce in place; the gradients are views of what is reduced.
    """
    model = parallel(world, mlp(), gradient_as_bucket_view=True, bucket_cap_mb=0.001)
    for _ in range(2):  # buckets are rebuilt after the first pass
        model.zero_grad()
        backward(world, model)
        same(gradients(model.module), reference_gradients(), "gradient of")


@on_ranks("CM-DDP-003", requires=("dist.ddp", "dist.broadcast"))
def ranks_begin_alike(world: World) -> None:
    """Ranks that begin with different parameters and buffers MUST all get those of rank 0.

    Fix: check ``broadcast``, also of lists of tensors that are coalesced.
    """
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
    with torch.no_grad():
        for position, tensor in enumerate(model.state_dict().values()):
            tensor.fill_(10 * position + world.rank)
    wrapped = parallel(world, model)
    for position, (name, tensor) in enumerate(wrapped.module.state_dict().items()):
        expected = torch.full(tensor.shape, 10 * position, dtype=tensor.dtype, device="cpu")
        require_close(tensor, expected, f"{name} of rank {world.rank}")


@on_ranks("CM-DDP-004", requires=("dist.ddp",))
def training_gives_the_same_parameters(world: World) -> None:
    """After some steps, all ranks MUST have the parameters that one process has.

    Fix: find the step that departs; gradients of step one are checked by CM-DDP-001.
    """
    model = parallel(world, mlp())
    optimizer = momentum(model.parameters())
    for step in range(STEPS):
        optimizer.zero_grad()
        backward(world, model, step)
        optimizer.step()
    same(snapshot(model.module.state_dict()), reference_state(momentum), "after training", TRAINING)


@on_ranks("CM-DDP-005", requires=("dist.ddp",))
def gradients_can_be_accumulated(world: World) -> None:
    """Inside ``no_sync`` gradients MUST stay local, and the next pass reduces their sum.

    Fix: let gradients accumulate in the tensors that the reducer reads.
    """
    model = parallel(world, mlp())
    with model.no_sync():
        backward(world, model)
    alone = mlp()
    inputs, targets = part(world.rank)
    loss_of(alone(inputs), targets).backward()
    same(gradients(model.module), gradients(alone), "local gradient of")
    backward(world, model)
    twice = {name: 2 * gradient for name, gradient in reference_gradients().items()}
    same(gradients(model.module), twice, "accumulated gradient of")


@on_ranks("CM-DDP-006", requires=("dist.ddp",))
def unused_parameters_are_found(world: World) -> None:
    """With ``find_unused_parameters`` a rank that skips a layer MUST still get its gradient.

    Fix: check ``all_reduce`` of the map of used parameters, an int32 tensor on the device.
    """
    import torch

    layers = torch.nn.ModuleList(torch.nn.Linear(3, 1, bias=False) for _ in range(SIZE))

    class Chosen(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layers = layers

        def forward(self, inputs: Tensor) -> Tensor:
            found: Tensor = self.layers[world.rank](inputs)
            return found

    model = parallel(world, Chosen(), find_unused_parameters=True)
    model(world.full(world.rank + 1, 1, 3)).sum().backward()
    for rank, layer in enumerate(model.module.layers):
        require(layer.weight.grad is not None, f"layer {rank} has no gradient")
        expected = torch.full((1, 3), (rank + 1) / SIZE)
        require_close(layer.weight.grad, expected, f"gradient of layer {rank}")


@on_ranks("CM-DDP-007", requires=("dist.ddp", "dist.async_op"))
def communication_hooks_work(world: World) -> None:
    """A communication hook MUST get each bucket, and its result MUST become the gradients.

    Fix: complete the future of a collective with its outputs; hooks chain callbacks to it.
    """
    import torch
    import torch.distributed as dist

    sizes = []

    def hook(_state: object, bucket: Any) -> Any:
        sizes.append(bucket.buffer().numel())
        work = dist.all_reduce(bucket.buffer() / SIZE, async_op=True)
        return work.get_future().then(lambda future: future.value()[0])

    model = parallel(world, mlp())
    # PyTorch reads annotations of a hook, and takes none of a lambda's.
    model.register_comm_hook(None, lambda state, bucket: hook(state, bucket))  # noqa: PLW0108
    backward(world, model)
    same(gradients(model.module), reference_gradients(), "gradient of")
    count = sum(parameter.numel() for parameter in model.parameters())
    require(sum(sizes) == count, f"the hook saw {sum(sizes)} of {count} elements")
    require(torch.is_grad_enabled(), "the hook left gradients switched off")


@on_ranks("CM-DDP-008", requires=("dist.ddp",))
def ranks_may_have_unequal_inputs(world: World) -> None:
    """Inside ``model.join()`` a rank with fewer batches MUST not hold up the others.

    Fix: let a rank that is done take part in the collectives of the others.
    """
    model = parallel(world, mlp())
    with model.join():
        for step in range(2 + world.rank):
            model.zero_grad()
            backward(world, model, step)
    require(True, "")  # it came here: no rank waits for another


@on_ranks("CM-DDP-009", requires=("dist.ddp", "amp.autocast"))
def mixed_precision_training_stays_in_step(world: World) -> None:
    """Under autocast with a gradient scaler, ranks MUST keep equal parameters.

    Fix: let every rank find the same infinities; gradients are reduced before they are unscaled.
    """
    import torch
    import torch.distributed as dist

    model = parallel(world, mlp())
    optimizer = momentum(model.parameters())
    scaler = torch.amp.GradScaler("cuda", init_scale=2.0**8)
    for step in range(3):
        optimizer.zero_grad()
        inputs, targets = (one.to(world.device) for one in part(world.rank, step))
        with torch.autocast("cuda", dtype=torch.float16):
            logits = model(inputs)
        scaler.scale(loss_of(logits.float(), targets)).backward()
        scaler.step(optimizer)
        scaler.update()
    flat = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    parts = [torch.zeros_like(flat) for _ in range(SIZE)]
    dist.all_gather(parts, flat)
    require(torch.equal(parts[0].cpu(), parts[1].cpu()), "the ranks' parameters differ")
    start = torch.cat([parameter.detach().flatten() for parameter in mlp().parameters()])
    require(not torch.equal(flat.cpu(), start), "training changed nothing")
