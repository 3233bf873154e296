"""Sharded training: parameters, optimiser state, layers or stages are spread over the ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuda_morph_conformance.checks.data_parallel import (
    backward,
    momentum,
    part,
    reference_gradients,
    reference_state,
    same,
)
from cuda_morph_conformance.models import exact_products, gradients, loss_of, mlp, numbers, snapshot
from cuda_morph_conformance.rank_pool import SIZE, on_ranks
from cuda_morph_conformance.registry import require
from cuda_morph_conformance.tolerances import PRODUCT, STEPS, TRAINING, require_close

if TYPE_CHECKING:
    from torch import Tensor, nn

    from cuda_morph_conformance.rank import World


def _mesh(world: World) -> Any:
    from torch.distributed.device_mesh import init_device_mesh

    return init_device_mesh("cuda", (world.size,))


def _sharded(world: World) -> Any:
    from torch.distributed.fsdp import fully_shard

    model = mlp().to(world.device)
    mesh = _mesh(world)
    for layer in (model[0], model[2]):
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def _full(tensors: dict[str, Any]) -> dict[str, Tensor]:
    return snapshot({name: tensor.full_tensor() for name, tensor in tensors.items()})


def _adam(parameters: Any) -> Any:
    import torch

    return torch.optim.AdamW(parameters, lr=0.01, foreach=False)


@on_ranks("CM-FSDP-001", requires=("dist.fsdp",))
def sharded_gradients(world: World) -> None:
    """``fully_shard`` MUST give the gradients of one process that has the whole batch.

    Fix: check ``all_gather_into_tensor`` and ``reduce_scatter_tensor``, and streams and events of
    the device: gathering runs beside computing.
    """
    model = _sharded(world)
    backward(world, model)
    found = _full({name: one.grad for name, one in model.named_parameters()})
    same(found, reference_gradients(), "gradient of")


@on_ranks("CM-FSDP-002", requires=("dist.fsdp",))
def parameters_are_really_sharded(world: World) -> None:
    """Under ``fully_shard`` a rank MUST hold its share of each parameter, and give the rest back.

    Fix: let ``reduce_scatter_tensor`` and freeing of storage work on the device.
    """
    model = _sharded(world)
    backward(world, model)
    for name, parameter in model.named_parameters():
        local = parameter.to_local()
        require(local.device == world.device, f"{name}: the share is on {local.device}")
        share = parameter.numel() // SIZE
        require(local.numel() == share, f"{name}: {local.numel()} elements, the share is {share}")


@on_ranks("CM-FSDP-003", requires=("dist.fsdp",))
def sharded_training(world: World) -> None:
    """Training under ``fully_shard`` MUST give the parameters that one process gets.

    Fix: find the step that departs; the first gradients are checked by CM-FSDP-001.
    """
    model = _sharded(world)
    optimizer = _adam(model.parameters())
    for step in range(STEPS):
        optimizer.zero_grad()
        backward(world, model, step)
        optimizer.step()
    same(_full(model.state_dict()), reference_state(_adam), "after training", TRAINING)


@on_ranks("CM-FSDP-004", requires=("dist.fsdp",))
def sharded_gradients_can_be_clipped(world: World) -> None:
    """The norm of sharded gradients MUST be that of the whole gradients.

    Fix: let the sum of squares be reduced over the ranks; it is a scalar on the device.
    """
    import torch

    model = _sharded(world)
    backward(world, model)
    norm: Any = torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3, foreach=False)
    flat = torch.cat([gradient.flatten() for gradient in reference_gradients().values()])
    require_close(norm.full_tensor(), flat.norm(), "norm", kind=PRODUCT, dtype="float32")
    clipped = _full({name: one.grad for name, one in model.named_parameters()})
    squares = sum(gradient.square().sum().item() for gradient in clipped.values())
    limit = 1.001e-3
    require(squares**0.5 < limit, f"the clipped norm is {squares**0.5:.3g}, the limit 1e-3")


@on_ranks("CM-FSDP-005", requires=("dist.fsdp", "io.save"))
def sharded_state_can_be_saved_whole(world: World) -> None:
    """The full state of a sharded model MUST load into a plain model, and back.

    Fix: let ``full_tensor`` gather on the device and copy to the CPU.
    """
    import torch
    from torch.distributed.checkpoint.state_dict import (
        StateDictOptions,
        get_model_state_dict,
        set_model_state_dict,
    )

    model = _sharded(world)
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    state: Any = get_model_state_dict(model, options=options)
    if world.rank == 0:
        require(all(one.device.type == "cpu" for one in state.values()), "not all are on the CPU")
        same(snapshot(state), snapshot(mlp().state_dict()), "saved")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    whole = {name: one.clone() for name, one in mlp().state_dict().items()}
    set_model_state_dict(model, whole, options=StateDictOptions(full_state_dict=True))
    same(_full(model.state_dict()), snapshot(mlp().state_dict()), "loaded")


@on_ranks("CM-FSDP-006", requires=("dist.fsdp",))
def the_older_sharding(world: World) -> None:
    """``FullyShardedDataParallel`` MUST give the parameters that one process gets.

    Fix: as for CM-FSDP-001; it also uses ``record_stream`` and ``Event`` of the device module.
    """
    from torch.distributed.fsdp import FullyShardedDataParallel

    model = FullyShardedDataParallel(mlp(), device_id=world.device, use_orig_params=True)
    optimizer = momentum(model.parameters())
    for step in range(3):
        optimizer.zero_grad()
        backward(world, model, step)
        optimizer.step()
    with FullyShardedDataParallel.summon_full_params(model):
        found = snapshot(dict(model.module.named_parameters()))
    same(found, reference_state(momentum, 3), "after training", TRAINING)


@on_ranks("CM-FSDP-007", requires=("dist.tensor_parallel",))
def layers_are_split(world: World) -> None:
    """``parallelize_module`` MUST give the outputs and gradients of the whole layers.

    Fix: check ``all_reduce`` and the functional collectives (CM-DIST-028) first.
    """
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    whole, split = mlp(), mlp().to(world.device)
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    parallelize_module(split, _mesh(world), plan)
    inputs, targets = part(0)
    expected = whole(inputs)
    loss_of(expected, targets).backward()
    with exact_products():
        found = split(inputs.to(world.device))
        loss_of(found, targets.to(world.device)).backward()
    require_close(found, expected, "output", kind=PRODUCT)
    width = whole[0].weight.shape[0] // SIZE
    local = split[0].weight.to_local().shape[0]
    require(local == width, f"the first layer has {local} rows here, expected {width}")
    ours: Any = {name: one.grad for name, one in split.named_parameters()}
    same(_full(ours), gradients(whole), "gradient of")


@on_ranks("CM-FSDP-008", requires=("dist.tensor_parallel", "dist.all_to_all"))
def tensors_change_their_placement(world: World) -> None:
    """A distributed tensor MUST keep its values when it is sharded in another way.

    Fix: check ``all_gather_into_tensor``, ``all_to_all_single`` and ``scatter`` first.
    """
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    whole = numbers(6, 4, seed=7)
    tensor = distribute_tensor(whole.to(world.device), _mesh(world), [Shard(0)])
    require_close(tensor.to_local(), whole.chunk(SIZE)[world.rank], "rows")
    columns = tensor.redistribute(placements=[Shard(1)])
    require_close(columns.to_local(), whole.chunk(SIZE, dim=1)[world.rank], "columns")
    require_close(columns.redistribute(placements=[Replicate()]).to_local(), whole, "everything")
    require_close((tensor @ tensor.T).full_tensor(), whole @ whole.T, "product", kind=PRODUCT)


@on_ranks("CM-FSDP-009", requires=("dist.broadcast", "autograd.optimizers"))
def optimizer_state_is_sharded(world: World) -> None:
    """``ZeroRedundancyOptimizer`` MUST give the parameters that the plain optimiser gives.

    Fix: check ``broadcast`` of parameters from each rank in turn.
    """
    import torch
    from torch.distributed.optim import ZeroRedundancyOptimizer
    from torch.nn.parallel import DistributedDataParallel

    model = DistributedDataParallel(mlp().to(world.device), device_ids=[world.rank])
    optimizer = ZeroRedundancyOptimizer(
        model.parameters(), optimizer_class=torch.optim.AdamW, lr=0.01, foreach=False
    )
    for step in range(STEPS):
        optimizer.zero_grad()
        backward(world, model, step)
        optimizer.step()
    held = len(optimizer.optim.state)
    require(held < len(list(model.parameters())), f"this rank holds the state of all {held}")
    same(snapshot(model.module.state_dict()), reference_state(_adam), "after training", TRAINING)


@on_ranks("CM-FSDP-010", requires=("dist.send_recv",))
def stages_pass_activations_on(world: World) -> None:
    """A model whose stages are on two ranks MUST get the gradients of the model on one.

    Fix: check ``send`` and ``recv`` (CM-DIST-019); activations go forward, gradients back.
    """
    import torch
    import torch.distributed as dist

    whole, stages = mlp(), mlp()
    inputs, targets = part(0)
    loss_of(whole(inputs), targets).backward()
    stage: nn.Module = (stages[:2] if world.rank == 0 else stages[2:]).to(world.device)
    with exact_products():
        if world.rank == 0:
            activation = stage(inputs.to(world.device))
            dist.send(activation.detach(), 1)
            gradient = torch.empty_like(activation)
            dist.recv(gradient, 1)
            activation.backward(gradient)
        else:
            activation = torch.empty(len(inputs), stages[2].in_features, device=world.device)
            dist.recv(activation, 0)
            loss_of(stage(activation.requires_grad_()), targets.to(world.device)).backward()
            dist.send(activation.grad, 0)
    found, expected = gradients(stages), gradients(whole)
    require(bool(found), "no gradient came back")
    same(found, {name: expected[name] for name in found}, "gradient of")
