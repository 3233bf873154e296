"""Helpers for ``torch.compile``: which backend to name, and shapes that do not recompile."""

from __future__ import annotations

import bisect
import os
import shutil
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cuda_morph.errors import SettingError
from cuda_morph.torch_facts import INDUCTOR_DEVICE_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable

INDUCTOR = "inductor"
WITHOUT_CODE = "aot_eager"
"""Traces and differentiates graphs, then runs them operator by operator; generates no code."""


def get_compile_backend() -> str:
    """Returns the name of the ``torch.compile`` backend that fits the active accelerator.

    A backend that the vendor registered with Dynamo under its device type or its name comes first;
    then inductor, where it makes code for the device; else ``aot_eager``. A simulated device of a
    vendor, ``sim:mychip``, says no more than that vendor's adapter does: without a backend that
    the vendor registers the answer is ``aot_eager``, although the simulation could compile.

    Returns:
        A name for ``torch.compile(..., backend=...)``.

    Example:
        >>> import cuda_morph
        >>> model = torch.compile(model, backend=cuda_morph.get_compile_backend())
        ... # doctest: +SKIP
    """
    from cuda_morph.activation import current

    activation = current()
    if activation is None or activation.backend.device_type == "cuda":
        return INDUCTOR
    backend = activation.backend
    registered = _registered_backends()
    for name in (backend.device_type, backend.name):
        if name in registered:
            return name
    if not _inductor_serves(backend.device_type):
        return WITHOUT_CODE
    if (backend.device_type == "cpu" or backend.simulated) and not _has_cpp_compiler():
        return WITHOUT_CODE
    return INDUCTOR


def _registered_backends() -> list[str]:
    from torch._dynamo.backends.registry import list_backends

    return list(list_backends(exclude_tags=()))


def _inductor_serves(device_type: str) -> bool:
    """Tells whether inductor serves a device: built in, registered, or said by its module."""
    import torch
    from torch._inductor.codegen.common import get_scheduling_for_device

    if device_type in INDUCTOR_DEVICE_TYPES or get_scheduling_for_device(device_type) is not None:
        return True
    return getattr(getattr(torch, device_type, None), "compile_backend", "") == INDUCTOR


def _has_cpp_compiler() -> bool:
    chosen = os.environ.get("CXX", "").split()[:1]
    return any(shutil.which(name) for name in chosen or ("g++", "clang++", "c++"))


@dataclass(frozen=True)
class Padded:
    """A tensor that was padded to the length of a bucket."""

    tensor: Any
    """The padded tensor."""
    original: int
    """The length before padding."""
    dim: int
    mask: Any = field(repr=False)
    """Bool tensor of the padded length: True where the data is real."""

    def unpad(self, result: Any = None, dim: int | None = None) -> Any:
        """Returns the real part of `result`, or of the padded tensor itself.

        Args:
            result: A tensor with the padded length, e.g. the output of the compiled model.
            dim: Its dimension of that length; the padded one by default.

        Returns:
            A view of the first `original` entries.
        """
        whole = self.tensor if result is None else result
        return whole.narrow(self.dim if dim is None else dim, 0, self.original)


class ShapeBucketer:
    """Pads a dimension to one of a few lengths, so that compiled code meets few shapes.

    Args:
        buckets: Lengths to pad to. Longer data is padded to a multiple of the largest.
        value: What to fill with.
        cache_size: Number of masks that are kept; the least recently used one goes first.

    Raises:
        SettingError: No bucket, or one that is not a positive integer.

    Example:
        >>> bucketer = ShapeBucketer([128, 256, 512])
        >>> padded = bucketer.pad(tokens, dim=1)  # doctest: +SKIP
        >>> logits = padded.unpad(model(padded.tensor))  # doctest: +SKIP
    """

    def __init__(self, buckets: Iterable[int], *, value: float = 0, cache_size: int = 64) -> None:
        self.buckets = tuple(sorted(set(buckets)))
        if not self.buckets or any(
            not isinstance(length, int) or length < 1 for length in self.buckets
        ):
            raise SettingError(
                f"Buckets must be positive integers, got {list(self.buckets)}.",
                hint="For example ShapeBucketer([64, 128, 256]).",
            )
        if cache_size < 1:
            raise SettingError(f"cache_size must be at least 1, got {cache_size}.")
        self._value = value
        self._cache_size = cache_size
        self._masks: OrderedDict[tuple[int, int, Any], Any] = OrderedDict()

    def bucket(self, length: int) -> int:
        """Returns the length that data of `length` is padded to."""
        largest = self.buckets[-1]
        if length > largest:
            return -(-length // largest) * largest
        return self.buckets[bisect.bisect_left(self.buckets, length)]

    def pad(self, tensor: Any, dim: int = 0) -> Padded:
        """Pads one dimension at its end.

        Args:
            tensor: Any dense tensor with a `dim`.
            dim: The dimension; negative ones count from the last.

        Returns:
            The padded tensor, with the mask and the way back. Nothing is copied where the length
            is a bucket's own.
        """
        from torch.nn.functional import pad

        dim = dim % tensor.ndim
        length = int(tensor.shape[dim])
        padded_length = self.bucket(length)
        padded = tensor
        if padded_length != length:
            # torch's pad counts dimensions from the last one, two figures each.
            amounts = [0, 0] * (tensor.ndim - dim - 1) + [0, padded_length - length]
            padded = pad(tensor, amounts, value=self._value)
        return Padded(
            tensor=padded,
            original=length,
            dim=dim,
            mask=self._mask(length, padded_length, tensor.device),
        )

    def _mask(self, length: int, padded_length: int, device: Any) -> Any:
        import torch

        key = (length, padded_length, device)
        mask = self._masks.pop(key, None)
        if mask is None:
            mask = torch.arange(padded_length, device=device) < length
        self._masks[key] = mask
        while len(self._masks) > self._cache_size:
            self._masks.popitem(last=False)
        return mask
