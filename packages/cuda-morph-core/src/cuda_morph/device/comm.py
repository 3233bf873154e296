"""Copies between devices of one process: the ``torch._C`` functions under ``DataParallel``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cuda_morph.device.protocol import DeviceRuntime

Tensor = Any


def c_functions(runtime: DeviceRuntime) -> dict[str, Callable[..., Any]]:
    """Returns broadcast, scatter and gather by their names in ``torch._C``.

    Args:
        runtime: Names the device type whose ordinals the callers pass.
    """

    def place(index: int) -> torch.device:
        if index < 0 or runtime.device_type == "cpu":
            return torch.device("cpu")
        return torch.device(runtime.device_type, index)

    return {
        "_broadcast": lambda tensor, devices: [_copy(tensor, place(d)) for d in devices],
        "_broadcast_out": _broadcast_out,
        "_broadcast_coalesced": lambda tensors, devices, _buffer: [
            [_copy(tensor, place(d)) for tensor in tensors] for d in devices
        ],
        "_scatter": lambda tensor, devices, sizes, dim, _streams: [
            part.to(place(d), non_blocking=True)
            for part, d in zip(_parts(tensor, len(devices), sizes, dim), devices, strict=False)
        ],
        "_scatter_out": _scatter_out,
        "_gather": lambda tensors, dim, destination: _gather(
            tensors,
            dim,
            torch.device(runtime.device_type) if destination is None else place(destination),
        ),
        "_gather_out": _gather_out,
    }


def _copy(tensor: Tensor, device: torch.device) -> Tensor:
    """Returns the tensor itself where it already is, as NCCL's broadcast does."""
    return tensor.to(device, non_blocking=True)


def _broadcast_out(tensor: Tensor, out: Sequence[Tensor]) -> Sequence[Tensor]:
    for target in out:
        if target.shape != tensor.shape:
            raise RuntimeError(
                f"Expected all output tensors to have the shape {tuple(tensor.shape)} of the "
                f"source, but got {tuple(target.shape)}"
            )
        target.copy_(tensor, non_blocking=True)
    return out


def _parts(tensor: Tensor, count: int, sizes: Sequence[int] | None, dim: int) -> Sequence[Tensor]:
    parts: Sequence[Tensor]
    parts = tensor.chunk(count, dim) if sizes is None else tensor.split(list(sizes), dim)
    return parts


def _scatter_out(
    tensor: Tensor, out: Sequence[Tensor], dim: int, _streams: object
) -> Sequence[Tensor]:
    sizes = [target.size(dim) for target in out]
    for part, target in zip(tensor.split(sizes, dim), out, strict=True):
        target.copy_(part, non_blocking=True)
    return out


def _gather(tensors: Sequence[Tensor], dim: int, device: torch.device) -> Tensor:
    return torch.cat([tensor.to(device, non_blocking=True) for tensor in tensors], dim)


def _gather_out(tensors: Sequence[Tensor], out: Tensor, dim: int) -> Tensor:
    out.copy_(_gather(tensors, dim, out.device))
    return out


def reduce_add(inputs: Sequence[Tensor], destination: object = None) -> Tensor:
    """Stands for ``torch.cuda.comm.reduce_add`` on the cpu backend, where PyTorch's refuses.

    Args:
        inputs: Tensors of one shape.
        destination: Ignored: the CPU is one device.
    """
    del destination
    first = inputs[0]
    if any(tensor.shape != first.shape for tensor in inputs):
        raise ValueError("reduce_add expects inputs of one shape")
    return first if len(inputs) == 1 else torch.stack(tuple(inputs)).sum(0)
