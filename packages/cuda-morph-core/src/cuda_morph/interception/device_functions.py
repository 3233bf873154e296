"""Finds PyTorch's C functions and methods that take a device, by PyTorch's own schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is

from cuda_morph.frozen_record import frozen_record
from cuda_morph.torch_facts import DEVICE_FUNCTIONS, DEVICE_TENSOR_METHODS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@frozen_record
class DeviceFunction:
    """A C function or method with a device parameter."""

    name: str
    function: Callable[..., Any]
    parameter: str = "device"
    leading: bool = False
    """Whether the device may also be the first positional argument."""


def functions() -> Iterator[DeviceFunction]:
    """Yields every C function of PyTorch's Python interface that parses a device string."""
    for namespace in (torch._C._VariableFunctionsClass, torch._C._fft):
        for name in vars(namespace):
            if _device_positions(name):
                yield DeviceFunction(name=name, function=getattr(namespace, name))
    for path, parameter in DEVICE_FUNCTIONS.items():
        function: Any = torch
        for part in path.split("."):
            function = getattr(function, part, None)
        if function is not None:
            yield DeviceFunction(
                name=path,
                function=function,
                parameter=parameter.lstrip("*"),
                leading=parameter.startswith("*"),
            )


def methods() -> Iterator[DeviceFunction]:
    """Yields every C method of ``torch.Tensor`` that parses a device string."""
    for name, method in vars(torch._C.TensorBase).items():
        positions = _device_positions(name)
        if positions or name in DEVICE_TENSOR_METHODS:
            yield DeviceFunction(name=name, function=method, leading=1 in positions)


def _device_positions(name: str) -> set[int]:
    """Returns where the schemas of an operator have an argument ``device``; -1: by name only."""
    return {
        -1 if argument.kwarg_only else position
        for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}")
        for position, argument in enumerate(schema.arguments)
        if argument.name == "device"
    }
