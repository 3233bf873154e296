"""Vendor errors get the class that programs catch, at the moment PyTorch raises them.

PyTorch turns every C++ error into ``RuntimeError`` at one place. The compiled tier watches that
place, so ``except torch.OutOfMemoryError`` works for vendors whose adapter raises plain errors.
Nothing is added to calls that succeed. On the other tiers a program asks for it itself, with
`cuda_morph.errors.translate`.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cuda_morph.error_lookup import ErrorTable
    from cuda_morph.patching import Journal


def apply(journal: Journal, plugin: str) -> None:
    """Starts watching, when the tier can.

    Args:
        journal: Receives the way back.
        plugin: Name of the active plugin, whose codes count.
    """
    try:
        from cuda_morph_native import native
    except ImportError:
        return
    if not hasattr(native, "watch_errors"):  # an older release of the compiled tier
        return
    journal.on_rollback(native.unwatch_errors)
    with contextlib.suppress(OSError):  # a platform whose offset tables are not known
        native.watch_errors(_Translator(plugin))


class _Translator:
    """Reads the codes when the first error comes: most runs never need them."""

    def __init__(self, plugin: str) -> None:
        self._plugin = plugin
        self._table: ErrorTable | None = None

    def __call__(self, text: str) -> RuntimeError | None:
        from cuda_morph.error_lookup import error_table
        from cuda_morph.error_translation import translated

        if self._table is None:
            self._table = error_table(self._plugin)
        answer = translated(text, self._table)
        if answer is not None:
            answer.__cause__ = RuntimeError(text)
        return answer
