"""Attention on the active backend: its fused kernel where one covers the call, else PyTorch's.

`attend`, `attend_packed` and `attend_cache` have the semantics of flash_attn 2.8: a causal mask
aligned at the bottom right, windows relative to it, and rows that see no key give zeros.
`answered` says which implementation did the work.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuda_morph.ecosystem.attention.cache import attend_cache
    from cuda_morph.ecosystem.attention.dense import attend
    from cuda_morph.ecosystem.attention.kernels import answered
    from cuda_morph.ecosystem.attention.options import Options
    from cuda_morph.ecosystem.attention.packed import attend_packed
    from cuda_morph.patching import Journal
    from cuda_morph.records import AttentionKernel


class Offer:
    """The active plugin and, once asked for, its kernels, best first."""

    def __init__(self) -> None:
        self.plugin: str | None = None
        self.device_type = ""
        self._kernels: tuple[AttentionKernel, ...] | None = None

    def clear(self) -> None:
        """Forgets plugin and kernels."""
        self.plugin, self.device_type, self._kernels = None, "", None

    def kernels(self) -> tuple[AttentionKernel, ...]:
        """Returns the kernels; the plugin is asked once."""
        if self._kernels is None:
            from cuda_morph.plugins import collect

            found = (
                [
                    record
                    for _, record in collect("cuda_morph_attention_kernels", plugin=self.plugin)
                ]
                if self.plugin
                else []
            )
            self._kernels = tuple(sorted(found, key=lambda kernel: -kernel.priority))
        return self._kernels


OFFER = Offer()


def offer(journal: Journal, plugin: str, device_type: str) -> None:
    """Makes the kernels of a plugin available until the journal is rolled back.

    Args:
        journal: Journal of the activation.
        plugin: Name of the active plugin; it is asked at the first call of attention.
        device_type: Tensors of this device type are given to the kernels.
    """
    OFFER.clear()
    OFFER.plugin, OFFER.device_type = plugin, device_type
    journal.on_rollback(OFFER.clear)


__all__ = ["OFFER", "Options", "answered", "attend", "attend_cache", "attend_packed", "offer"]

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
