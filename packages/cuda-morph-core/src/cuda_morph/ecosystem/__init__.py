"""What other libraries look for beside PyTorch, applied lazily and taken back at deactivation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuda_morph.ecosystem.attention import offer
from cuda_morph.ecosystem.flash_attn import offer_stand_in
from cuda_morph.import_watch import after_import

if TYPE_CHECKING:
    from cuda_morph.device.layer import LayerContext
    from cuda_morph.interception.tier import Target


def apply(context: LayerContext, target: Target) -> None:
    """Makes attention kernels and the package ``flash_attn`` available; imports neither."""
    offer(context.journal, context.plugin, target.device_type)
    offer_stand_in(context.journal)

    def adapt_transformers() -> None:
        from cuda_morph.ecosystem import transformers_attention

        transformers_attention.adapt(context.journal, target.device_type)

    context.journal.on_rollback(after_import("transformers.utils.import_utils", adapt_transformers))
