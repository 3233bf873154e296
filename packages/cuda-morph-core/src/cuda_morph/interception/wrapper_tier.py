"""Tier T3: Python wrappers, for platforms where PyTorch's compiled code cannot be reached.

PyTorch's classes stay the same objects; only their constructors change. C functions that take a
device are found by schema and wrapped where modules look them up.
"""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is

from cuda_morph.interception import device_classes, device_functions
from cuda_morph.interception.constructors import (
    mismatch,
    original_constructor,
    replace_constructor,
)
from cuda_morph.interception.device_arguments import DeviceNames, WrappedFunction, wrap_method
from cuda_morph.interception.tensor_attributes import cuda_method, is_cuda_property

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cuda_morph.interception import Target
    from cuda_morph.patching import Journal

_CONSTRUCTORS = {
    torch.device: device_classes.device_constructor,
    torch.Generator: device_classes.leading_constructor,
    torch.Stream: device_classes.leading_constructor,
    torch.Event: device_classes.event_constructor,
    torch._C.StorageBase: device_classes.keyword_constructor,
}

_LIMITS = (
    "Device strings inside TorchScript and in calls of torch.ops are not translated.",
    (
        "A function such as torch.zeros that was taken from torch before activation is found in "
        "modules; a copy in a closure, a default argument or a container stays PyTorch's own."
    ),
    (
        "Wrapped functions equal PyTorch's own but are other objects; methods such as Tensor.to "
        "do not, so a __torch_function__ table made before activation misses them."
    ),
    "Creating and moving tensors costs up to a microsecond more per call, on any device.",
)


class WrapperTier:
    """Wraps functions and constructors in Python."""

    name = "T3"

    def obstacle(self, target: Target) -> str:
        """See `Tier.obstacle`."""
        if target.masked:
            return (
                "Python wrappers cannot make devices print as cuda for some packages only, nor "
                "in compiled code: they give the native view"
            )
        return mismatch(*_CONSTRUCTORS)

    def apply(self, target: Target, journal: Journal) -> None:
        """See `Tier.apply`."""
        names = DeviceNames(target.device_type)
        journal.on_rollback(names.retire)
        for owner, build in _CONSTRUCTORS.items():
            replace_constructor(journal, owner, build(original_constructor(owner), names))
        _wrap_functions(journal, names)
        _wrap_methods(journal, names)
        for function in (torch.nn.Module.to, torch.nn.utils.rnn.PackedSequence.to):
            _translate_first_argument(journal, function, names)
        journal.set_attribute(torch.Tensor, "cuda", cuda_method(target))
        journal.set_attribute(torch.Tensor, "is_cuda", is_cuda_property(target))

    def limits(self, target: Target) -> tuple[str, ...]:
        """See `Tier.limits`."""
        del target
        return _LIMITS


def _wrap_functions(journal: Journal, names: DeviceNames) -> None:
    wrapped = {
        id(found.function): WrappedFunction(
            found.function, names, found.parameter, leading=found.leading
        )
        for found in device_functions.functions()
    }
    table = torch.jit._builtins._get_builtin_table()
    for identity, wrapper in wrapped.items():
        # TorchScript knows its operators by the identity of the Python function.
        if identity in table:
            journal.set_item(table, id(wrapper), table[identity])
    journal.on_rollback(_unwrap_functions)
    for namespace in _namespaces():
        # Names imported from torch early are wrapped where they lie, in any module.
        if not wrapped.keys().isdisjoint(map(id, namespace.values())):
            for name, value in list(namespace.items()):
                if id(value) in wrapped:
                    namespace[name] = wrapped[id(value)]


def _unwrap_functions() -> None:
    """Puts the C functions back, also into modules that imported a wrapper while active."""
    for namespace in _namespaces():
        if WrappedFunction in set(map(type, namespace.values())):
            for name, value in list(namespace.items()):
                if type(value) is WrappedFunction:
                    namespace[name] = value.original


def _namespaces() -> Iterator[dict[str, Any]]:
    for module in list(sys.modules.values()):
        if isinstance(module, types.ModuleType):
            yield vars(module)


def _wrap_methods(journal: Journal, names: DeviceNames) -> None:
    for found in device_functions.methods():
        method: Any = wrap_method(found.function, names, leading=found.leading)
        if isinstance(found.function, staticmethod):
            method = staticmethod(method)
        journal.set_attribute(torch.Tensor, found.name, method)


def _translate_first_argument(
    journal: Journal, function: types.FunctionType, names: DeviceNames
) -> None:
    """Redirects a Python method whose C parser has to stay itself: Dynamo replaces that one."""
    original = types.FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    journal.redirect_function(function, wrap_method(original, names, leading=True))
