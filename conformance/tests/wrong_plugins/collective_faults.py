"""Faults of collectives: the library returns, and the tensors are wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fault import on_device
from kernel_faults import _register

Change = Callable[..., Any]


def _around(operator: str, change: Change) -> None:
    """Puts `change` around a collective of the device; it gets the right one first."""
    import torch

    key = torch._C.DispatchKey.PrivateUse1
    right = torch.library.get_kernel(f"c10d::{operator}", key)
    keys = torch._C.DispatchKeySet(key)
    _register(
        f"c10d::{operator}",
        lambda *arguments: change(lambda *given: right.call_boxed(keys, *given), *arguments),
    )


@on_device("CM-DIST-010")
def the_root_gets_the_average(_device: Any) -> None:
    """A sum to one rank is divided by the number of ranks."""

    def reduce(right: Change, tensors: Any, group: Any, *rest: Any) -> Any:
        work = right(tensors, group, *rest)
        for tensor in tensors:
            tensor.div_(2)
        return work

    _around("reduce_", reduce)


@on_device("CM-DIST-015")
def the_last_rank_is_dropped(_device: Any) -> None:
    """Of the numbers that ranks bring to a gather, those of the last one do not arrive."""

    def gather(right: Change, outputs: Any, inputs: Any, *rest: Any) -> Any:
        import torch.distributed as dist

        if dist.get_rank() == dist.get_world_size() - 1:
            inputs = [part * 0 if part.is_floating_point() else part for part in inputs]
        return right(outputs, inputs, *rest)

    _around("gather_", gather)


@on_device("CM-DIST-016")
def scattered_parts_are_in_reverse(_device: Any) -> None:
    """A scatter from a rank other than the first hands the parts out in reverse."""

    def scatter(right: Change, outputs: Any, inputs: Any, *rest: Any) -> Any:
        import torch.distributed as dist

        if dist.get_rank() > 0:  # only the root has parts
            inputs = [parts[::-1] for parts in inputs]
        return right(outputs, inputs, *rest)

    _around("scatter_", scatter)


@on_device("CM-DIST-031")
def double_precision_is_narrowed(_device: Any) -> None:
    """Numbers of double precision travel in single precision."""

    def all_reduce(right: Change, tensors: Any, *rest: Any) -> Any:
        import torch

        wide = [tensor for tensor in tensors if tensor.dtype == torch.float64]
        for tensor in wide:
            tensor.copy_(tensor.float())
        return right(tensors, *rest)

    _around("allreduce_", all_reduce)
