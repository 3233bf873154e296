"""A picture of everything that an activation may touch, to compare before and after."""

from __future__ import annotations

import os
import sys
import types

import torch

CLASSES = (
    torch.Tensor,
    torch._C.TensorBase,
    torch.device,
    torch.Generator,
    torch.Stream,
    torch.Event,
    torch.UntypedStorage,
    torch._C.StorageBase,
    torch.cuda.streams.Stream,
    torch.cuda.streams.Event,
    torch.nn.Module,
    torch.autocast,
)


def picture() -> dict[str, dict[str, object]]:
    """Returns, by owner and name, an identity of each value."""
    found: dict[str, dict[str, object]] = {"environment": dict(os.environ)}
    for name, module in list(sys.modules.items()):
        if isinstance(module, types.ModuleType) and not name.startswith("cuda_morph"):
            found[name] = {key: identity(value) for key, value in list(vars(module).items())}
    for owner in CLASSES:
        found[repr(owner)] = {key: identity(value) for key, value in vars(owner).items()}
        found[repr(owner)]["<constructor>"] = constructor(owner)
    found["location tags"] = {
        str(n): id(e) for n, e in enumerate(torch.serialization._package_registry)
    }
    return found


def identity(value: object) -> object:
    """A function's code counts too: it is exchanged where the object has to stay the same."""
    kind = type(value)  # isinstance() would wake torch's deprecated lazy names
    if kind is types.FunctionType:
        return id(value), id(value.__code__), value.__defaults__
    if kind in (staticmethod, classmethod):
        return id(value), id(getattr(value.__func__, "__code__", None))
    return id(value)


def constructor(owner: type) -> int:
    from cuda_morph.interception.constructors import type_object

    return type_object(owner).tp_new


def differences(before: dict[str, dict[str, object]]) -> list[str]:
    """Returns what changed; modules that were imported in the meantime are no change."""
    wrong = []
    after = picture()
    for owner, names in before.items():
        now = after.get(owner, {})
        for name in names.keys() | now.keys():
            imported = name not in names and f"{owner}.{name}" in sys.modules
            if names.get(name) != now.get(name) and not imported:
                wrong.append(f"{owner}.{name}")
    return sorted(wrong)
