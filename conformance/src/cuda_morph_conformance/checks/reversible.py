"""Coming and going: activation can be taken back, repeated, and fail without a trace."""

from __future__ import annotations

import sys
import threading
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any

from cuda_morph_conformance.models import numbers
from cuda_morph_conformance.registry import CheckFailed, check, require
from cuda_morph_conformance.tolerances import require_close
from cuda_morph_conformance.vocabulary import VIEWS, Level

if TYPE_CHECKING:
    from cuda_morph_conformance.subject import Subject

_fresh = partial(
    check,
    level=Level.RUNS,
    requires=("load.reversible",),
    since="1.0",
    devices=1,
    fresh=True,
    views=(),
)
_TIMES = 50
_CLASSES = (
    "Tensor",
    "Generator",
    "Event",
    "Stream",
    "UntypedStorage",
    "nn.Module",
    "_C.TensorBase",
)


@_fresh("CM-REV-001", views=VIEWS)
def namespaces_come_back(subject: Subject) -> None:
    """After use and deactivation, every module of torch, and its classes, MUST be as before.

    Fix: change torch through ``cuda_morph_patches`` only; what an adapter adds when it is imported
    for the first time is its own affair, and not counted.
    """
    with subject.activate():
        _use_device()
    before = _namespaces()
    with subject.activate():
        during = _namespaces()
        _use_device()
    after = _namespaces()
    changed = sorted(name for name in before if after.get(name) != before[name])
    require(not changed, f"{len(changed)} names differ: {', '.join(changed[:5])}")
    require(during != before, "activation changed nothing, so nothing is proved")


@_fresh("CM-REV-002")
def fifty_times_is_like_once(subject: Subject) -> None:
    """Activating and deactivating fifty times MUST work each time and leave nothing behind.

    Fix: let ``DeviceMapping.init`` do its work once and return at once when it is called again.
    """
    for _ in range(2):
        with subject.activate():
            _use_device()
    before = (_namespaces(), threading.active_count(), len(sys.meta_path))
    for number in range(_TIMES):
        with subject.activate() as activation:
            changes = activation.changes
            if number % 10 == 0:
                _use_device()
    after = (_namespaces(), threading.active_count(), len(sys.meta_path))
    require(changes > 0, "the last activation changed nothing")
    require(after[1:] == before[1:], f"threads and import hooks: {before[1:]}, now {after[1:]}")
    changed = [name for name in before[0] if after[0].get(name) != before[0][name]]
    require(not changed, f"{len(changed)} names differ: {', '.join(changed[:5])}")


@_fresh("CM-REV-003")
def failing_activation_leaves_no_trace(subject: Subject) -> None:
    """An activation that fails half-way MUST raise an error with a code and put everything back.

    Fix: change torch through ``cuda_morph_patches`` only, and nothing in ``DeviceMapping.init``.
    """
    import torch

    import cuda_morph
    from cuda_morph import bridges

    with subject.activate():
        _use_device()
    before, whole = _namespaces(), bridges.apply

    def fail(*arguments: Any) -> None:
        whole(*arguments)
        raise OSError("made by this check")

    bridges.apply = fail  # type: ignore[assignment]
    try:
        subject.activate()
    except cuda_morph.errors.MorphError as error:
        require("made by this check" in str(error), f"another error: {error}")
        require(str(error).startswith("[CM-E"), f"no code: {error}")
    else:
        raise CheckFailed("the activation did not fail")
    finally:
        bridges.apply = whole
    require(not cuda_morph.is_active(), "is_active() is True after the failure")
    after = _namespaces()
    changed = [name for name in before if after.get(name) != before[name]]
    require(not changed, f"{len(changed)} names differ: {', '.join(changed[:5])}")
    require(not torch.cuda.is_available(), "torch.cuda.is_available() is True after the failure")
    with subject.activate():
        _use_device()


@_fresh("CM-REV-004")
def tensors_outlive_the_activation(subject: Subject) -> None:
    """Tensors made while active MUST stay usable under the vendor's own name afterwards.

    Fix: do not unload the adapter; deactivation gives back names, not memory.
    """
    import torch

    with subject.activate():
        x = numbers(4).cuda().requires_grad_()
        loss = (x**2).sum()
    loss.backward()
    require(x.device.type == subject.device_type, f"the device shows as {x.device}")
    require(x.grad is not None, "backward after deactivation gave no gradient")
    require_close(x.grad, 2 * numbers(4), "the gradient")
    own = torch.ones(4, device=subject.device_type)
    require_close(x.detach() + own, numbers(4) + 1, "a sum with a new tensor")
    with subject.activate():
        require_close(x.detach() + torch.ones(4, device="cuda"), numbers(4) + 1, "active again")


@_fresh("CM-REV-005")
def activations_nest(subject: Subject) -> None:
    """Activations of the same backend MUST nest, and another view inside MUST be refused.

    Fix: do not call ``activate`` or ``deactivate`` from the plugin.
    """
    import cuda_morph
    from cuda_morph.errors import AlreadyActiveError

    with subject.activate():
        with subject.activate():
            _use_device()
        require(cuda_morph.is_active(), "the inner block ended the outer one")
        _use_device()
        try:
            subject.activate(view="cuda" if subject.view == "native" else "native")
        except AlreadyActiveError as error:
            require(error.hint, "the refusal does not say what to do")
        else:
            raise CheckFailed("the other view was activated inside")
    require(not cuda_morph.is_active(), "is_active() is True after both blocks")


@_fresh("CM-REV-006")
def views_follow_each_other(subject: Subject) -> None:
    """The two views MUST be usable one after the other in one process.

    Fix: keep nothing that depends on the view when the adapter loads.
    """
    import torch

    shown = []
    for view in ("native", "cuda", "native"):
        with subject.activate(view=view):
            _use_device()
            shown.append(torch.ones(1, device="cuda").device.type)
    own = subject.device_type
    expected = [own, own if own == "cpu" else "cuda", own]
    require(shown == expected, f"devices were {shown}, expected {expected}")


def _use_device() -> None:
    """Uses some of everything, so that lazily made state exists."""
    import torch

    x = torch.nn.Linear(3, 3).cuda()(numbers(2, 3).to("cuda"))
    x.sum().backward()
    with torch.autocast("cuda"):
        x.detach() @ x.detach().T
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda.current_stream().synchronize()
    torch.cuda.synchronize()


def _namespaces() -> dict[str, Any]:
    """Returns what stands under each name: the object's identity, and a function's code."""
    import torch

    spaces: dict[str, Any] = {
        name: vars(module)
        for name, module in list(sys.modules.items())
        if name == "torch" or name.startswith(("torch.cuda", "torch._C", "torch.amp"))
        if module is not None
    }
    for path in _CLASSES:
        owner: Any = torch
        for part in path.split("."):
            owner = getattr(owner, part)
        spaces[f"torch.{path}"] = vars(owner)
    return {
        f"{space}.{name}": (id(value), id(value.__code__) if _is_function(value) else 0)
        for space, names in spaces.items()
        for name, value in list(names.items())
    }


def _is_function(value: object) -> bool:
    return isinstance(value, FunctionType)
