"""Optimisers: the steps that torch.optim takes on the device are those it takes on the CPU."""

from __future__ import annotations

import copy
from functools import partial
from typing import TYPE_CHECKING, Any

from cuda_morph_conformance.models import (
    CHAR_TRANSFORMER,
    MLP,
    exact_products,
    loss_of,
    mlp,
    numbers,
    snapshot,
    train,
)
from cuda_morph_conformance.registry import check, require
from cuda_morph_conformance.tolerances import PRODUCT, TRAINING, require_close
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor, nn

    from cuda_morph_conformance.subject import Subject

_OPTIMIZERS: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 1e-3},
    "Adam": {"lr": 1e-2, "amsgrad": True},
    "AdamW": {"lr": 1e-2, "weight_decay": 1e-2},
    "Adamax": {"lr": 1e-2},
    "NAdam": {"lr": 1e-2},
    "RAdam": {"lr": 1e-2},
    "Adagrad": {"lr": 1e-2},
    "Adadelta": {"lr": 1.0},
    "RMSprop": {"lr": 1e-3, "momentum": 0.9, "centered": True},
    "ASGD": {"lr": 1e-2},
    "Rprop": {"lr": 1e-3},
}
_FUSED = ("SGD", "Adam", "AdamW", "Adagrad")
_FEW = 4

_trains = partial(check, level=Level.TRAINS, since="1.0", devices=1)


@_trains("CM-OPT-001", requires=("autograd.optimizers",))
def optimizers_step_as_on_the_cpu(_subject: Subject) -> None:
    """Every dense optimiser of torch.optim MUST take the steps that it takes on the CPU.

    Fix: let in-place arithmetic (``addcmul_``, ``addcdiv_``, ``lerp_``) on the device write into
    the tensor it is called on; scalars arrive as Python numbers and as CPU tensors.
    """
    for name, options in _OPTIMIZERS.items():
        _require_same_steps(name, {**options, "foreach": False}, options)


@_trains("CM-OPT-002", requires=("autograd.optimizers",))
def foreach_steps_as_the_loop(_subject: Subject) -> None:
    """Optimisers with foreach=True MUST take the steps that they take one tensor at a time.

    Fix: register ``_foreach_*`` kernels for the device, or none at all: PyTorch then loops over
    the list by itself.
    """
    for name, options in _OPTIMIZERS.items():
        _require_same_steps(name, {**options, "foreach": False}, {**options, "foreach": True})


@_trains("CM-OPT-003", requires=("autograd.fused_optimizers",))
def fused_steps_as_the_loop(_subject: Subject) -> None:
    """SGD, Adam, AdamW and Adagrad with fused=True MUST take the steps of the plain ones.

    Fix: register ``_fused_sgd_``, ``_fused_adam_``, ``_fused_adamw_`` and ``_fused_adagrad_`` for
    the device, and name the device type in ``torch.utils._foreach_utils`` of the adapter.
    """
    for name in _FUSED:
        options = {key: value for key, value in _OPTIMIZERS[name].items() if key != "foreach"}
        _require_same_steps(name, {**options, "foreach": False}, {**options, "fused": True})


@_trains("CM-OPT-004", requires=("autograd.optimizers",))
def state_lives_on_the_device(_subject: Subject) -> None:
    """The moments that an optimiser keeps MUST be on the device of their parameter.

    Fix: let ``torch.zeros_like`` on the device allocate on the device.
    """
    import torch

    model = mlp().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    _step(model, optimizer)
    states = list(optimizer.state.values())
    require(len(states) == len(list(model.parameters())), f"there are {len(states)} states")
    for state in states:
        for name in ("exp_avg", "exp_avg_sq"):
            require(state[name].is_cuda, f"{name} is on {state[name].device}")


@_trains("CM-OPT-005", requires=("autograd.optimizers",))
def state_survives_a_checkpoint(_subject: Subject) -> None:
    """Training MUST go on the same after the optimiser's state went through the CPU and back.

    Fix: make copies between device and CPU exact, and keep dtype and shape of zero-dimensional
    tensors such as ``step``.
    """
    import torch

    def resumed(*, interrupt: bool) -> dict[str, Tensor]:
        model = mlp().cuda()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        for _ in range(_FEW):
            _step(model, optimizer)
        if interrupt:
            weights = snapshot(model.state_dict())
            state = torch.utils._pytree.tree_map(_on_cpu, optimizer.state_dict())
            model = mlp().cuda()
            model.load_state_dict({name: value.float() for name, value in weights.items()})
            optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
            optimizer.load_state_dict(copy.deepcopy(state))
        for _ in range(_FEW):
            _step(model, optimizer)
        return snapshot(model.state_dict())

    plain = resumed(interrupt=False)
    for name, value in resumed(interrupt=True).items():
        require_close(value, plain[name], f"{name} after resuming", kind=PRODUCT, dtype="float32")


@_trains("CM-OPT-006", requires=("autograd.optimizers",))
def schedules_change_the_steps(_subject: Subject) -> None:
    """A learning rate schedule MUST change the steps on the device as it does on the CPU.

    Fix: read the learning rate at every step; a kernel must not keep the first one.
    """
    import torch

    found = []
    for place in ("cpu", "cuda"):
        model = mlp().to(place)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.5, total_steps=_FEW)
        for _ in range(_FEW):
            _step(model, optimizer)
            schedule.step()
        found.append(snapshot(model.state_dict()))
    for name, value in found[1].items():
        require_close(value, found[0][name], name, kind=TRAINING, dtype="float32")


@_trains("CM-OPT-007", requires=("autograd.optimizers",))
def gradients_are_clipped(_subject: Subject) -> None:
    """clip_grad_norm_ and clip_grad_value_ MUST clip device gradients in place, as on the CPU.

    Fix: check ``linalg_vector_norm``, ``_foreach_norm`` and ``_foreach_mul_`` on the device.
    """
    import torch
    from torch.nn import utils

    for foreach in (False, True):
        norms, clipped = [], []
        for place in ("cpu", "cuda"):
            model = _with_gradients(mlp().to(place))
            norms.append(utils.clip_grad_norm_(model.parameters(), 0.1, foreach=foreach))
            left = utils.get_total_norm([p.grad for p in model.parameters()]).cpu()
            require_close(left, torch.tensor(0.1), f"norm afterwards on {place}", kind=PRODUCT)
            utils.clip_grad_value_(model.parameters(), 0.01, foreach=foreach)
            clipped.append([p.grad for p in model.parameters()])
        require(norms[1].is_cuda, f"the norm is on {norms[1].device}")
        require_close(norms[1], norms[0], f"norm with foreach={foreach}", kind=PRODUCT)
        for seen, expected in zip(clipped[1], clipped[0], strict=True):
            require_close(seen, expected, f"clipped with foreach={foreach}", kind=PRODUCT)


@_trains("CM-OPT-008", requires=("autograd.optimizers",))
def optimizers_survive_the_move(_subject: Subject) -> None:
    """An optimiser made before Module.cuda() MUST step the parameters that are on the device.

    Fix: let ``Module.cuda`` change ``Parameter.data`` in place, which it does by default; see
    ``torch.__future__.set_swap_module_params_on_conversion`` where the adapter changes it.
    """
    import torch

    model = mlp()
    before = list(model.parameters())
    optimizer = torch.optim.SGD(before, lr=0.1)
    model.cuda()
    same = all(old is new for old, new in zip(before, model.parameters(), strict=True))
    require(same, "Module.cuda() made new Parameter objects")
    start = snapshot(model.state_dict())
    _step(model, optimizer)
    moved = [n for n, v in snapshot(model.state_dict()).items() if not v.equal(start[n])]
    require(len(moved) == len(before), f"only {moved} changed")


@_trains("CM-OPT-009", requires=("autograd.optimizers",))
def zero_grad_frees_or_zeroes(_subject: Subject) -> None:
    """zero_grad MUST drop gradients, or fill them with zeros with set_to_none=False.

    Fix: see ``_foreach_zero_`` and ``zero_`` on the device.
    """
    import torch

    model = _with_gradients(mlp().cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.zero_grad(set_to_none=False)
    left = [p.grad for p in model.parameters()]
    require(all(g is not None and not g.any() for g in left), "gradients are not zero")
    optimizer.zero_grad()
    require(all(p.grad is None for p in model.parameters()), "gradients are still there")


@_trains("CM-OPT-010", requires=("autograd.optimizers",))
def closures_are_evaluated(_subject: Subject) -> None:
    """LBFGS, which evaluates a closure several times, MUST find the minimum on the device.

    Fix: check ``dot``, ``abs().max()`` and reading a number with ``item()`` on the device.
    """
    import torch

    target = numbers(6).cuda()
    x = torch.zeros(6, device="cuda", requires_grad=True)
    optimizer = torch.optim.LBFGS([x], line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = ((x - target) ** 2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    require_close(x, target, "minimum", kind=TRAINING)


@_trains("CM-OPT-011", requires=("autograd.optimizers",))
def own_optimizers_step(_subject: Subject) -> None:
    """An optimiser written by a user (Lion) MUST take the same steps as on the CPU.

    Fix: check ``sign``, ``lerp`` and in-place operators under ``torch.no_grad``.
    """
    import torch

    class Lion(torch.optim.Optimizer):  # type: ignore[misc]
        @torch.no_grad()  # type: ignore[untyped-decorator]
        def step(self, closure: Any = None) -> None:
            del closure
            for group in self.param_groups:
                for parameter in group["params"]:
                    state = self.state[parameter]
                    mean = state.setdefault("mean", torch.zeros_like(parameter))
                    update = torch.lerp(parameter.grad, mean, 0.9).sign_()
                    parameter.mul_(1 - group["lr"] * 0.01).add_(update, alpha=-group["lr"])
                    mean.lerp_(parameter.grad, 0.01)

    # One step: a sign that rounding turns would not be a fault of the device later on.
    runs = [
        train(MLP, place, steps=1, optimizer=lambda ps: Lion(ps, {"lr": 1e-2}))
        for place in ("cpu", "cuda")
    ]
    for name, value in runs[1].state.items():
        require_close(value, runs[0].state[name], name, kind=TRAINING, dtype="float32")


@_trains("CM-OPT-012", requires=("autograd.optimizers",))
def averages_of_weights_follow(_subject: Subject) -> None:
    """An exponential moving average of a model MUST stay on the device and follow its weights.

    Fix: check ``_foreach_lerp_`` and ``copy.deepcopy`` of device parameters.
    """
    from torch.optim import swa_utils

    model = mlp().cuda()
    start = snapshot(model.state_dict())
    average = swa_utils.AveragedModel(model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.5))
    average.update_parameters(model)
    for parameter in model.parameters():
        parameter.data.add_(2)
    average.update_parameters(model)
    for name, value in average.module.state_dict().items():
        require(value.is_cuda, f"{name} is on {value.device}")
        require_close(value, start[name] + 1, f"average of {name}", dtype="float32")


@_trains("CM-OPT-013", requires=("autograd.optimizers", "autograd.parity"))
def transformers_train_with_adamw(_subject: Subject) -> None:
    """Ten AdamW steps of a character transformer MUST follow the CPU in double precision.

    Fix: run CM-OPT-001 and CM-GRAD-032 first; where both pass, epsilon or bias correction are
    computed in lower precision than float32.
    """
    import torch

    def adamw(parameters: Any) -> Any:
        return torch.optim.AdamW(parameters, lr=1e-2)

    expected = train(CHAR_TRANSFORMER, "cpu", dtype=torch.float64, optimizer=adamw)
    seen = train(CHAR_TRANSFORMER, "cuda", optimizer=adamw)
    require_close(seen.losses, expected.losses, "losses", kind=TRAINING, dtype="float32")


def _require_same_steps(name: str, reference: dict[str, Any], options: dict[str, Any]) -> None:
    import torch

    def made(given: dict[str, Any]) -> Callable[[Any], Any]:
        return lambda parameters: getattr(torch.optim, name)(parameters, **given)

    expected = train(MLP, "cpu", steps=_FEW, optimizer=made(reference))
    seen = train(MLP, "cuda", steps=_FEW, optimizer=made(options))
    for key, value in seen.state.items():
        what = f"{name}: {key} after {_FEW} steps"
        require_close(value, expected.state[key], what, kind=TRAINING, dtype="float32")


def _with_gradients(model: nn.Module) -> nn.Module:
    place = next(model.parameters()).device
    with exact_products():
        loss_of(model(MLP.inputs().to(place)), MLP.targets().to(place)).backward()
    return model


def _step(model: nn.Module, optimizer: Any) -> None:
    optimizer.zero_grad()
    _with_gradients(model)
    optimizer.step()


def _on_cpu(value: Any) -> Any:
    return value.cpu() if hasattr(value, "cpu") else value
