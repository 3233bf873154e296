"""Structures of tensors: operators take and give tensors within lists, tuples and dictionaries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

UNINITIALISED = frozenset(
    {
        "empty",
        "empty_like",
        "empty_permuted",
        "empty_strided",
        "new_empty",
        "new_empty_strided",
    }
)
"""Operators whose contents mean nothing; only shape, dtype and device can be compared."""

NOT_UNIQUE = frozenset(
    {"geqrf", "linalg.eig", "linalg.eigvals", "linalg.ldl_factor", "linalg.ldl_factor_ex"}
    | {"linalg.qr", "qr"}
)
"""Operators with several right answers: order, sign or phase are the library's choice."""

HOST_ARGUMENTS = frozenset({"tensor_split"})
"""Operators whose arguments after the first must stay on the CPU, on every device."""


def to_device(value: Any, device: Any, dtypes: dict[Any, Any] | None = None) -> Any:
    """Copies a structure of samples to a device.

    Args:
        value: Tensors, containers of tensors, devices and plain values.
        device: Where tensors go; a CPU device in the structure is replaced by it too.
        dtypes: Tensors and dtypes of the first kind become the second.

    Returns:
        A structure of the same shape; tensors are fresh copies that keep ``requires_grad``.
    """
    import torch

    dtypes = dtypes or {}
    if isinstance(value, torch.Tensor):
        copy = value.detach().clone().to(device=device, dtype=dtypes.get(value.dtype, value.dtype))
        return copy.requires_grad_(value.requires_grad)
    if isinstance(value, torch.dtype):
        return dtypes.get(value, value)
    if value == "cpu" or (isinstance(value, torch.device) and value.type == "cpu"):
        return device
    if isinstance(value, dict):
        return {key: to_device(item, device, dtypes) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(to_device(item, device, dtypes) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(to_device(item, device, dtypes) for item in value)
    return value


def tensors(value: Any) -> Iterator[Any]:
    """Yields the tensors of a structure, in order."""
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item)
