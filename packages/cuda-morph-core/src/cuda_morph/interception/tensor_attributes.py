"""``Tensor.cuda`` and ``Tensor.is_cuda`` in Python, for the tiers without compiled ones."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_morph.interception import Target


def cuda_method(target: Target) -> Callable[..., Any]:
    """Returns a ``Tensor.cuda`` that moves to the target device."""
    default, on_cpu = target.device, target.device_type == "cpu"
    preserve = torch.preserve_format

    def cuda(
        self: Any,
        device: Any = None,
        non_blocking: bool = False,
        memory_format: Any = preserve,
    ) -> Any:
        """Returns a copy of this tensor on the accelerator that stands for CUDA."""
        if device is None and not non_blocking and memory_format is preserve:
            return self.to(default)  # x.cuda(): parsing three keywords would double its cost
        if isinstance(device, bool):
            raise TypeError("cuda(): argument 'device' must be a device, not bool")
        where = default if device is None else device
        if on_cpu and isinstance(where, int):
            # PyTorch gives a bare number to the accelerator, and there is none beside the CPU.
            if where > 0:
                raise RuntimeError(f"CUDA error: invalid device ordinal (device {where} of 1)")
            where = default
        return self.to(device=where, non_blocking=non_blocking, memory_format=memory_format)

    return cuda


def traceable_cuda(target: Target, watched: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a ``Tensor.cuda`` that calls `watched`, and in compiled code what Dynamo can follow.

    Args:
        target: The accelerator.
        watched: The tier's method with something around it; it may end in C.
    """
    from torch.compiler import is_dynamo_compiling

    plain = cuda_method(target)

    def cuda(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_dynamo_compiling():
            return plain(self, *args, **kwargs)
        return watched(self, *args, **kwargs)

    cuda.__doc__ = torch.Tensor.cuda.__doc__
    return cuda


def is_cuda_property(target: Target) -> property:
    """Returns an ``is_cuda`` that is True on the target device."""
    type_of = vars(torch._C.TensorBase)["device"].__get__
    names = {target.device_type, "cuda"}
    policy = target.policy
    by_frame = policy.by_frame

    def is_cuda(self: Any) -> bool:
        """Is True if the Tensor is stored on the accelerator that stands for CUDA."""
        if type_of(self).type not in names:
            return False
        return not by_frame or policy.frame_sees_cuda(sys._getframe(1))

    return property(is_cuda)
