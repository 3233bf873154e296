"""What other libraries look for beside PyTorch, applied lazily and taken back at deactivation."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from cuda_morph.import_watch import FinderOnDemand, after_import

if TYPE_CHECKING:
    from cuda_morph.device.layer import LayerContext
    from cuda_morph.interception import Target
    from cuda_morph.patching import Journal
    from cuda_morph.records import AttentionKernel


class Offer:
    """The active plugin and, once asked for, its attention kernels, best first."""

    def __init__(self) -> None:
        self.plugin: str | None = None
        self.device_type = ""
        self._kernels: tuple[AttentionKernel, ...] | None = None

    def make(self, plugin: str, device_type: str) -> None:
        """Offers the kernels of a plugin, which is asked at the first call of attention.

        Args:
            plugin: Name of the active plugin.
            device_type: Tensors of this device type are given to the kernels.
        """
        self.clear()
        self.plugin, self.device_type = plugin, device_type

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


def apply(context: LayerContext, target: Target) -> None:
    """Makes attention kernels and the package ``flash_attn`` available; imports neither."""
    OFFER.make(context.plugin, target.device_type)
    context.journal.on_rollback(OFFER.clear)
    _offer_flash_attn(context.journal)

    def adapt_transformers() -> None:
        from cuda_morph.ecosystem import transformers_attention

        transformers_attention.adapt(context.journal, target.device_type)

    context.journal.on_rollback(after_import("transformers.utils.import_utils", adapt_transformers))


def _offer_flash_attn(journal: Journal) -> None:
    """Lets ``import flash_attn`` find the stand-in until the journal is rolled back."""
    finder = FinderOnDemand(("flash_attn", "flash-attn"), _stand_in_finder)
    sys.meta_path.insert(0, finder)

    def undo() -> None:
        sys.meta_path.remove(finder)
        if finder.made is not None:
            finder.made.forget()

    journal.on_rollback(undo)


def _stand_in_finder(place: object) -> Any:
    from cuda_morph.ecosystem.flash_attn import StandInFinder

    return StandInFinder(place)
