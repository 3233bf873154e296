"""``ReduceOp.AVG`` on libraries that have no average: divide first, then sum.

``fully_shard`` and many programs ask NCCL for the average. A plugin whose library lacks it says so
with ``-avg`` in ``CollectiveBackend.ops``. Dividing before the sum needs no step afterwards, so
handles and coalescing stay as they are. Integers are left to the library, which refuses them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch.distributed  # noqa: TID253 - loaded at activation only, when torch already is

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_morph.patching import Journal

_IN_PLACE = {"all_reduce": ("tensor", 1), "all_reduce_coalesced": ("tensors", 1)}
_FROM_INPUT = {"reduce_scatter_single": ("input", 2), "reduce_scatter": ("input_list", 2)}
"""By function: its parameter that holds what is reduced, and the position of ``op``; what is
reduced comes right before it."""


def apply(journal: Journal) -> None:
    """Lets the reductions of torch.distributed compute averages."""
    c10d = torch.distributed.distributed_c10d
    for table, in_place in ((_IN_PLACE, True), (_FROM_INPUT, False)):
        for name, (parameter, position) in table.items():
            function: Any = getattr(c10d, name, None)
            while hasattr(function, "__wrapped__"):
                function = function.__wrapped__
            if function is not None:
                average = _Average(parameter, position, in_place=in_place)
                average.original = journal.redirect_function(function, average)


class _Average:
    """Stands for one reduction of torch.distributed."""

    original: Callable[..., Any]

    def __init__(self, parameter: str, position: int, *, in_place: bool) -> None:
        self._parameter = parameter
        self._position = position
        self._in_place = in_place

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        average = torch.distributed.ReduceOp.AVG
        op = args[self._position] if len(args) > self._position else kwargs.get("op")
        if op is None or op != average:
            return self.original(*args, **kwargs)
        given = list(args[: self._position])
        more = {**kwargs, "op": torch.distributed.ReduceOp.SUM}
        names = ("group", "async_op")
        more.update(zip(names, args[self._position + 1 :], strict=False))
        value = more[self._parameter] if self._parameter in more else given[-1]
        if not _can_be_divided(value):
            return self.original(*args, **kwargs)
        size = torch.distributed.get_world_size(more.get("group"))
        divided = self._divided(value, size)
        if self._parameter in more:
            more[self._parameter] = divided
        else:
            given[-1] = divided
        return self.original(*given, **more)

    def _divided(self, value: Any, size: int) -> Any:
        with torch.no_grad():
            if isinstance(value, list | tuple):
                return [self._divided(one, size) for one in value]
            return value.div_(size) if self._in_place else value / size


def _can_be_divided(value: Any) -> bool:
    tensors = value if isinstance(value, list | tuple) else [value]
    return all(
        isinstance(one, torch.Tensor)
        and one.device.type != "cpu"
        and (one.is_floating_point() or one.is_complex())
        for one in tensors
    )
