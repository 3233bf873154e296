"""Modules on devices, and the default device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuda_morph_conformance.expectations import (
    require_equal,
    require_on,
    same_random_numbers,
    shown,
)
from cuda_morph_conformance.registry import check, require
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from torch import nn

    from cuda_morph_conformance.subject import Subject

_MODULES = ("device.module_methods",)
_DEFAULT = ("device.default",)


@check("CM-DEV-050", level=Level.RUNS, requires=_MODULES, since="1.0", devices=1)
def modules_move_with_all_spellings(subject: Subject) -> None:
    """Module.cuda and Module.to MUST move all parameters and buffers and return the module itself.

    Fix: see the traceback; the module calls ``Tensor.cuda`` and ``Tensor.to`` on each of them.
    """
    import torch

    index = torch.cuda.current_device()
    for device in (None, index, f"cuda:{index}", torch.device("cuda", index)):
        model = _model()
        require(model.cuda(device) is model, f"Module.cuda({device!r}) returned another module")
        _require_moved(model, subject, f"Module.cuda({device!r})", index)
    for device in ("cuda", torch.device("cuda")):
        _require_moved(_model().to(device), subject, f"Module.to({device!r})", index)
        moved = _model().to(device=device, dtype=torch.float16)
        _require_moved(moved, subject, f"Module.to({device!r}, float16)", index)
        require_equal(moved[0].weight.dtype, torch.float16, "dtype of a parameter")


@check("CM-DEV-051", level=Level.RUNS, requires=_MODULES, since="1.0", devices=1)
def parameters_stay_the_same_objects(_subject: Subject) -> None:
    """Moving a module MUST keep its parameters the same objects, so optimisers follow.

    Fix: make device tensors compatible with CPU tensors for ``set_data``
    (``torch._has_compatible_shallow_copy_type``), or let core's module conversion handle it.
    """
    import torch

    model = _model()
    weight, held = model[0].weight, list(model.parameters())
    model.cuda()
    require(model[0].weight is weight, "the parameter was replaced")
    model(torch.eye(3, device="cuda")).square().sum().backward()
    require(weight.grad is not None and weight.grad.is_cuda, "the gradient is not on the device")
    with torch.no_grad():
        for parameter in held:
            parameter.fill_(2)
    require_equal(model[2].bias.tolist(), [2.0, 2.0], "the module after a change by its old list")
    model.cpu()
    require(model[0].weight is weight, "moving back replaced the parameter")
    gradient = weight.grad.device.type if weight.grad is not None else None
    require_equal((weight.device.type, gradient), ("cpu", "cpu"), "devices after moving back")


@check("CM-DEV-052", level=Level.RUNS, requires=_MODULES, since="1.0", devices=1)
def shared_weights_stay_shared(_subject: Subject) -> None:
    """A weight that two modules share MUST still be shared after moving and after half().

    Fix: as for parameters that must stay the same objects.
    """
    import torch

    with same_random_numbers():
        first, second = torch.nn.Embedding(5, 4), torch.nn.Linear(4, 5, bias=False)
    second.weight = first.weight
    model = torch.nn.Sequential(first, second).cuda()
    require(first.weight is second.weight, "moving separated the weights")
    model.half()
    require(first.weight is second.weight, "half() separated the weights")
    require_equal(second.weight.dtype, torch.float16, "dtype after half()")
    require(second.weight.is_cuda, "half() moved the weight off the device")


@check("CM-DEV-053", level=Level.RUNS, requires=_MODULES, since="1.0", devices=1)
def empty_modules_are_filled(subject: Subject) -> None:
    """to_empty MUST give a module from meta device memory, and load_state_dict fill it.

    Fix: register ``empty_like`` and ``copy_`` from CPU tensors for the device.
    """
    import torch

    source = _model()
    with torch.device("meta"):
        model = _model()
    index = torch.cuda.current_device()
    _require_moved(model.to_empty(device="cuda"), subject, "to_empty", index)
    model.load_state_dict(source.state_dict())
    _require_moved(model, subject, "load_state_dict", index)
    for name, value in source.state_dict().items():
        require(torch.equal(model.state_dict()[name].cpu(), value), f"{name} has other values")


@check("CM-DEV-054", level=Level.RUNS, requires=_MODULES, since="1.0", devices=1)
def modules_are_made_on_the_device(subject: Subject) -> None:
    """Modules MUST take device and dtype in their constructors.

    Fix: register the random and fill kernels that initialisation uses.
    """
    import torch
    from torch import nn

    index = torch.cuda.current_device()
    with same_random_numbers():
        modules = (
            nn.Linear(2, 3, device="cuda"),
            nn.Conv2d(1, 2, 3, device=torch.device("cuda")),
            nn.Embedding(4, 2, device=f"cuda:{index}", dtype=torch.float16),
            nn.LSTM(2, 2, device="cuda"),
            nn.MultiheadAttention(4, 2, device="cuda"),
            nn.BatchNorm1d(2, device="cuda"),
        )
    for module in modules:
        _require_moved(module, subject, f"{type(module).__name__}(device=)", index)


@check("CM-DEV-060", level=Level.RUNS, requires=_DEFAULT, since="1.0", devices=1)
def default_device_is_used(subject: Subject) -> None:
    """After set_default_device("cuda") new tensors MUST be there, and on the CPU once it is reset.

    Fix: nothing in the plugin; PyTorch passes the device to each factory.
    """
    import torch

    where = shown(subject, torch.cuda.current_device())
    try:
        torch.set_default_device("cuda")
        made = {"ones": torch.ones(2), "tensor": torch.tensor([1]), "arange": torch.arange(3)}
        explicit = torch.ones(1, device="cpu")
        default = torch.get_default_device()
    finally:
        torch.set_default_device(None)
    for what, tensor in made.items():
        require_on(tensor, subject, f"torch.{what}", index=torch.cuda.current_device())
    require_equal(str(default), where, "get_default_device()")
    require_equal(explicit.device.type, "cpu", "a tensor with device='cpu'")
    require_equal(torch.ones(1).device.type, "cpu", "a tensor made afterwards")


@check("CM-DEV-061", level=Level.RUNS, requires=_DEFAULT, since="1.0", devices=1)
def device_is_a_context(subject: Subject) -> None:
    """``with torch.device("cuda")`` MUST place new tensors and modules there, also when nested.

    Fix: nothing in the plugin; PyTorch passes the device to each factory.
    """
    import torch

    index = torch.cuda.current_device()
    with same_random_numbers(), torch.device("cuda"):
        first, layer = torch.full((2,), 7), torch.nn.Linear(2, 2)
        with torch.device("meta"):
            inner = torch.ones(1)
        again = torch.fft.fftfreq(4)
    for what, tensor in {"full": first, "Linear": layer.weight, "fftfreq": again}.items():
        require_on(tensor, subject, f"{what} in the context", index=index)
    require_equal(first.tolist(), [7, 7], "values made in the context")
    require_equal(inner.device.type, "meta", "a tensor of the inner context")
    require_equal(torch.ones(1).device.type, "cpu", "a tensor made afterwards")


@check(
    "CM-DEV-062",
    level=Level.RUNS,
    requires=("device.default", "device.multiple"),
    since="1.0",
    devices=2,
)
def device_context_takes_an_index(subject: Subject) -> None:
    """``with torch.device("cuda", 1)`` MUST place new tensors on the second device only.

    Fix: respect the index of the device that a factory is given.
    """
    import torch

    with torch.device("cuda", 1):
        require_on(torch.zeros(3), subject, "zeros in the context", index=1)
        require_on(torch.zeros(3, device="cuda:0"), subject, "zeros on cuda:0")
    require_equal(torch.cuda.current_device(), 0, "the current device")


def _model() -> nn.Sequential:
    from torch import nn

    with same_random_numbers():
        return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


def _require_moved(module: nn.Module, subject: Subject, what: str, index: int) -> None:
    for name, parameter in module.named_parameters():
        require_on(parameter, subject, f"{what}: parameter {name}", index=index)
        require(type(parameter).__name__ == "Parameter", f"{what}: {name} is no Parameter now")
    for name, buffer in module.named_buffers():
        require_on(buffer, subject, f"{what}: buffer {name}", index=index)
