"""Vendor errors get the class that programs catch, at the moment PyTorch raises them.

PyTorch turns every C++ error into ``RuntimeError`` at one place. The compiled tier watches that
place, so ``except torch.OutOfMemoryError`` works for vendors whose adapter raises plain errors.
Nothing is added to calls that succeed, and this module is imported at the first error. On the other
tiers a program asks for it itself, with `cuda_morph.errors.translate`.
"""

from __future__ import annotations

from cuda_morph.error_lookup import error_table
from cuda_morph.error_translation import translated


def exception_for(text: str, plugin: str) -> RuntimeError | None:
    """Returns the exception to raise in the place of PyTorch's, or ``None`` to leave that.

    Args:
        text: Message of the error.
        plugin: Name of the active plugin, whose codes count.
    """
    answer = translated(text, error_table(plugin))
    if answer is not None:
        answer.__cause__ = RuntimeError(text)
    return answer
