"""Custom operators inside graphs that run on host aliases: their kernels get device tensors.

A custom operator with a kernel for the device has none, or another one, for the CPU. In a graph
for the CPU it is called through an operator of ours, which has the same schema and hands device
tensors over the same memory to the kernel.
"""

# ruff: noqa: TID253 - loaded when a program compiles, when torch already is

from __future__ import annotations

from typing import Any

import torch
import torch.utils._pytree as pytree

_SPACE = "cuda_morph_sim_graph"
_KEY = "PrivateUse1"
_not_custom = ("aten", "c10d", "prims", _SPACE)
_library = torch.library.Library(_SPACE, "DEF")
_known: dict[tuple[str, int], Any] = {}


def for_host(operator: Any, index: int) -> Any:
    """Return what a graph on host aliases calls instead of an operator.

    Args:
        operator: Anything that occurs in a graph.
        index: The device that the graph was made for.

    Returns:
        An operator of the same schema that runs the device's kernel, or `operator` itself.
    """
    if not isinstance(operator, torch._ops.OpOverload) or operator.namespace in _not_custom:
        return operator
    if not torch._C._dispatch_has_kernel_for_dispatch_key(operator.name(), _KEY):
        return operator
    key = (operator.name(), index)
    if key not in _known:
        _known[key] = _define(operator, index)
    return _known[key]


def _define(operator: Any, index: int) -> Any:
    schema = str(operator._schema)
    qualified = operator.name().replace("::", "_").replace(".", "_")
    name = f"{qualified}_{index}"
    _library.define(name + schema[schema.index("(") :])

    def run(*args: Any, **kwargs: Any) -> Any:
        def to_device(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                return torch.ops.cuda_morph_sim.as_device(value, index)
            return value

        given = pytree.tree_map(to_device, (args, kwargs))
        return pytree.tree_map_only(
            torch.Tensor, torch.ops.cuda_morph_sim.as_host, operator(*given[0], **given[1])
        )

    def shape(*args: Any, **kwargs: Any) -> Any:
        def on_host(value: torch.Tensor) -> torch.Tensor:
            return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="cpu")

        return pytree.tree_map_only(torch.Tensor, on_host, operator(*args, **kwargs))

    _library.impl(name, run, "CPU")
    torch.library.register_fake(f"{_SPACE}::{name}", shape, lib=_library)
    return getattr(torch.ops, _SPACE).__getattr__(name).default
