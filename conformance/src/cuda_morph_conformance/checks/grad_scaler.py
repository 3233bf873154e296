"""Gradient scaling: losses are scaled, infinities found, and steps skipped."""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

from cuda_morph_conformance.registry import check, require
from cuda_morph_conformance.tolerances import require_close
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from cuda_morph_conformance.subject import Subject

_trains = partial(check, level=Level.TRAINS, since="1.0", devices=1)
_SCALE = 8.0


@_trains("CM-AMP-030", requires=("amp.grad_scaler",))
def every_spelling_scales(_subject: Subject) -> None:
    """Every spelling of GradScaler MUST be enabled and multiply device losses by its scale.

    Fix: GradScaler switches itself off where ``torch.cuda.is_available()`` is False for PyTorch's
    own code; see what it asks in ``torch.cuda.amp.common``.
    """
    import torch

    loss = torch.ones((), device="cuda")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        scalers = {
            "torch.amp.GradScaler()": torch.amp.GradScaler(init_scale=_SCALE),
            "torch.amp.GradScaler('cuda')": torch.amp.GradScaler("cuda", init_scale=_SCALE),
            "torch.GradScaler('cuda')": torch.GradScaler("cuda", init_scale=_SCALE),
            "torch.cuda.amp.GradScaler()": torch.cuda.amp.GradScaler(init_scale=_SCALE),
        }
    for name, scaler in scalers.items():
        require(scaler.is_enabled(), f"{name} is disabled")
        scaled = scaler.scale(loss)
        require(scaled.is_cuda, f"{name} moved the loss to {scaled.device}")
        require(scaled.item() == _SCALE, f"{name} scaled 1 to {scaled.item()}")


@_trains("CM-AMP-031", requires=("amp.grad_scaler",))
def steps_are_unscaled(_subject: Subject) -> None:
    """A step through the scaler MUST be the step without scaling, for plain and fused optimisers.

    Fix: register ``_amp_foreach_non_finite_check_and_unscale_`` for the device.
    """
    import torch

    for options in ({"foreach": False}, {"foreach": True}):
        weight, optimizer, scaler = _parts(**options)
        scaler.scale((weight * 2).sum()).backward()
        require_close(weight.grad, torch.full((3,), 2 * _SCALE), "scaled gradient")
        scaler.unscale_(optimizer)
        require_close(weight.grad, torch.full((3,), 2.0), "unscaled gradient")
        scaler.step(optimizer)
        scaler.update()
        require_close(weight, torch.full((3,), -1.0), f"weight after a step with {options}")


@_trains("CM-AMP-032", requires=("amp.grad_scaler",))
def infinities_skip_the_step(_subject: Subject) -> None:
    """A gradient that is infinite or NaN MUST skip the step and lower the scale.

    Fix: ``_amp_foreach_non_finite_check_and_unscale_`` must set ``found_inf`` to 1 for both, and
    ``_amp_update_scale_`` multiply by the backoff factor.
    """
    import torch

    for bad in (float("inf"), float("-inf"), float("nan")):
        weight, optimizer, scaler = _parts()
        factors = torch.tensor([1.0, bad, 1.0], device="cuda")
        scaler.scale((weight * factors).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        require_close(weight, torch.ones(3), f"weight after a gradient of {bad}")
        require(scaler.get_scale() == _SCALE / 2, f"scale {scaler.get_scale()} after {bad}")


@_trains("CM-AMP-033", requires=("amp.grad_scaler",))
def scale_grows_again(_subject: Subject) -> None:
    """After growth_interval good steps the scale MUST grow, and not earlier.

    Fix: ``_amp_update_scale_`` must count in ``growth_tracker`` and start again after growing.
    """
    weight, optimizer, scaler = _parts()
    scales = []
    for _ in range(4):
        optimizer.zero_grad()
        scaler.scale(weight.sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    expected = [_SCALE, 2 * _SCALE, 2 * _SCALE, 4 * _SCALE]
    require(scales == expected, f"scales were {scales}, expected {expected}")


@_trains("CM-AMP-034", requires=("amp.grad_scaler",))
def scaler_state_survives(_subject: Subject) -> None:
    """GradScaler.state_dict MUST carry scale and growth to another scaler.

    Fix: reading the scale with ``item()`` must wait for the device.
    """
    weight, optimizer, scaler = _parts()
    scaler.scale(weight.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    _, _, other = _parts()
    other.load_state_dict(scaler.state_dict())
    require(other.state_dict() == scaler.state_dict(), "the states differ")
    require(other.get_scale() == scaler.get_scale(), f"the scale is {other.get_scale()}")


@_trains("CM-AMP-035", requires=("amp.grad_scaler", "autograd.fused_optimizers"))
def fused_optimizers_unscale(_subject: Subject) -> None:
    """Fused optimisers, which unscale by themselves, MUST step and skip as plain ones do.

    Fix: fused kernels take ``grad_scale`` and ``found_inf``; they must divide by the first and do
    nothing where the second is 1.
    """
    import torch

    for factor, expected in ((2.0, -1.0), (float("inf"), 1.0)):
        weight, optimizer, scaler = _parts(fused=True)
        scaler.scale((weight * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        require_close(weight, torch.full((3,), expected), f"weight after a gradient of {factor}")


def _parts(**options: Any) -> tuple[Any, Any, Any]:
    """Returns a weight of ones, its optimiser with learning rate 1, and a scaler."""
    import torch

    weight = torch.ones(3, device="cuda", requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1.0, **options)
    return weight, optimizer, torch.amp.GradScaler("cuda", init_scale=_SCALE, growth_interval=2)
