"""Attention on the active backend: its fused kernel where one covers the call, else PyTorch's.

`attend`, `attend_packed` and `attend_cache` have the semantics of flash_attn 2.8: a causal mask
aligned at the bottom right, windows relative to it, and rows that see no key give zeros.
`answered` says which implementation did the work.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cuda_morph.ecosystem import OFFER

if TYPE_CHECKING:
    from cuda_morph.ecosystem.attention.cache import attend_cache
    from cuda_morph.ecosystem.attention.dense import attend
    from cuda_morph.ecosystem.attention.kernels import answered
    from cuda_morph.ecosystem.attention.options import Options
    from cuda_morph.ecosystem.attention.packed import attend_packed

__all__ = ["OFFER", "Options", "answered", "attend", "attend_cache", "attend_packed"]

_HOME = {
    "Options": "options",
    "answered": "kernels",
    "attend": "dense",
    "attend_cache": "cache",
    "attend_packed": "packed",
}


def __getattr__(name: str) -> Any:
    """Imports on first use: activation offers kernels and computes nothing."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
