"""Which query sees which key, and how far apart they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded by the first call of attention only

if TYPE_CHECKING:
    from cuda_morph.ecosystem.attention.options import Options


def offsets(queries: int, keys: int, device: Any) -> Any:
    """Returns key position minus query position, aligned at the last of both, as (Sq, Sk)."""
    rows = torch.arange(queries, device=device) + (keys - queries)
    return torch.arange(keys, device=device)[None, :] - rows[:, None]


def visible(options: Options, queries: int, keys: int, device: Any) -> Any:
    """Returns a boolean tensor that is true where a key is seen, or ``None`` when all are.

    Its shape is (Sq, Sk), or that of the mask if there is one.
    """
    left, right = options.bounds
    seen = options.mask
    if left is None and right is None:
        return seen
    distance = offsets(queries, keys, device)
    for limit in (
        None if left is None else distance >= -left,
        None if right is None else distance <= right,
    ):
        if limit is not None:
            seen = limit if seen is None else seen & limit
    return seen


def slopes_by_batch(slopes: Any, batch: int) -> Any:
    """Returns ALiBi slopes as (batch, heads)."""
    return slopes.expand(batch, -1) if slopes.dim() == 1 else slopes
