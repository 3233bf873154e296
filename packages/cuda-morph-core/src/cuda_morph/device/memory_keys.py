"""The keys of ``torch.cuda.memory_stats``, completed with zero where a backend keeps no count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_POOLS = ("all", "large_pool", "small_pool")
_MOMENTS = ("current", "peak", "allocated", "freed")
_POOLED = (
    "allocation",
    "segment",
    "active",
    "inactive_split",
    "allocated_bytes",
    "reserved_bytes",
    "active_bytes",
    "inactive_split_bytes",
    "requested_bytes",
)
_UNPOOLED = ("oversize_allocations", "oversize_segments")
_COUNTS = (
    "num_alloc_retries",
    "num_ooms",
    "num_sync_all_streams",
    "num_device_alloc",
    "num_device_free",
    "max_split_size",
)

KEYS: tuple[str, ...] = (
    *(f"{kind}.{pool}.{moment}" for kind in _POOLED for pool in _POOLS for moment in _MOMENTS),
    *(f"{kind}.{moment}" for kind in _UNPOOLED for moment in _MOMENTS),
    *_COUNTS,
)
"""As documented for ``torch.cuda.memory.memory_stats`` in PyTorch 2.13."""


def nested(stats: Mapping[str, int]) -> dict[str, Any]:
    """Returns ``{"a.b": 1}`` as ``{"a": {"b": 1}}`` with every documented key present.

    Args:
        stats: Flat statistics of a backend; keys it does not count may be missing.
    """
    tree: dict[str, Any] = {}
    for key in (*KEYS, *(key for key in stats if key not in _KNOWN)):
        *parents, leaf = key.split(".")
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})
        node[leaf] = stats.get(key, 0)
    return tree


_KNOWN = frozenset(KEYS)
