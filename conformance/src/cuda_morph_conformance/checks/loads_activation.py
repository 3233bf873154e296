"""Level ``loads``: activation says what it did, and deactivation puts everything back.

Where the device is missing the activation must be refused, with a reason and without a trace.
"""

from __future__ import annotations

import os
import sys
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING

from cuda_morph_conformance.registry import CheckFailed, NotRun, check, require
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from cuda_morph_conformance.subject import Subject

_WATCHED = ("torch", "torch.cuda", "torch._C", "torch.accelerator", "torch.serialization")
_CLASSES = ("torch.Tensor", "torch.nn.Module", "torch.Generator", "torch.device")


@check("CM-LOAD-050", level=Level.LOADS, requires=("load.activation",), since="0.1", fresh=True)
def activation_gives_a_manifest(subject: Subject) -> None:
    """Activating the plugin by name MUST activate it and say what became of each CUDA name.

    Without its device, activating it is refused with the reason and what to do next.

    Fix: look at the refusals in ``cuda-morph info --backend NAME``; the device module must answer.
    """
    import cuda_morph

    if not _has_device(subject):
        refuse(subject)
        require(not cuda_morph.is_active(), "is_active() is true after a refusal")
        return
    with subject.activate() as activation:
        # On a card that PyTorch itself calls cuda, activation finds it and changes nothing.
        left_alone = activation.tier == "passthrough"
        require(cuda_morph.is_active() or left_alone, "is_active() is false inside the block")
        named = activation.backend.name
        require(named == subject.name, f"activate({subject.name!r}) activated {named!r}")
        mapped = activation.rows or left_alone
        require(mapped, f"tier {activation.tier} without a single mapped name")
    require(not cuda_morph.is_active(), "is_active() is true after the block")


@check("CM-LOAD-051", level=Level.LOADS, requires=("load.reversible",), since="0.1", fresh=True)
def deactivation_restores_torch(subject: Subject) -> None:
    """After deactivation, every name of torch that activation may touch MUST be what it was.

    So it is after an activation that was refused because the device is missing. The adapter is
    loaded by a first activation and stays, so a second one is compared.

    Fix: change torch through ``cuda_morph_patches`` only; core keeps a journal of those.
    """
    if not _has_device(subject):
        refuse(subject)  # what torch imports when it is first asked stays imported
        before = snapshot()
        refuse(subject)
        require(before == snapshot(), "a refused activation left names changed")
        return
    with subject.activate():
        pass
    before = snapshot()
    with subject.activate() as activation:
        during = snapshot()
    after = snapshot()
    changed = sorted(
        name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
    )
    require(not changed, f"{len(changed)} names differ, first: {', '.join(changed[:5])}")
    # Without a change in between, nothing would have been proved.
    require(activation.tier == "passthrough" or before != during, "activation changed nothing")


@check("CM-LOAD-052", level=Level.LOADS, requires=("load.reversible",), since="0.1", fresh=True)
def deactivation_restores_process(subject: Subject) -> None:
    """After deactivation, environment, import hooks and import path MUST be what they were.

    Fix: undo in the plugin what the plugin did, or leave it to core's own hooks.
    """
    enter = _enter_and_leave if _has_device(subject) else refuse
    enter(subject)
    before = (dict(os.environ), list(sys.meta_path), list(sys.path))
    enter(subject)
    after = (dict(os.environ), list(sys.meta_path), list(sys.path))
    for what, old, new in zip(
        ("os.environ", "sys.meta_path", "sys.path"), before, after, strict=True
    ):
        require(old == new, f"{what} changed")


def _has_device(subject: Subject) -> bool:
    try:
        subject.need_device()
    except NotRun:
        import torch  # noqa: F401 - without PyTorch nothing can be said, and this raises

        return False
    return True


def _enter_and_leave(subject: Subject) -> None:
    with subject.activate():
        pass


def refuse(subject: Subject) -> None:
    """Activate a plugin whose device is missing, and hold the refusal against the rules."""
    from cuda_morph.errors import BackendUnavailableError

    try:
        with subject.activate():
            pass
    except BackendUnavailableError as error:
        require(error.message, "the refusal gives no reason")
        require(error.hint, "the refusal does not say what to do next")
        return
    raise CheckFailed("detection says there is no device, and activation was not refused")


def snapshot() -> dict[str, tuple[int, ...]]:
    """Returns the identity of every object in the watched namespaces, and of functions' code."""
    import torch

    spaces: dict[str, dict[str, object]] = {}
    for name, module in sys.modules.items():
        watched = name in _WATCHED or name.startswith("torch.cuda.")
        if watched and isinstance(module, ModuleType):
            spaces[name] = dict(vars(module))
    for name in _CLASSES:
        owner: object = torch
        for part in name.split(".")[1:]:
            owner = getattr(owner, part)
        spaces[name] = dict(vars(owner))
    return {
        f"{space}.{name}": (id(value), id(value.__code__))
        if isinstance(value, FunctionType)
        else (id(value),)
        for space, names in spaces.items()
        for name, value in names.items()
    }
