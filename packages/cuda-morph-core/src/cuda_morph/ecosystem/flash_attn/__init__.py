"""The import name ``flash_attn`` while a backend is active.

The package cannot be installed without CUDA's compiler, and half of the programs that use it have
no other path. A stand-in with its public functions is found under the name instead: its modules
are in the folder ``package``. A real ``flash_attn`` is never shadowed, and a namespace package of
that name (flash_attn 4 installs ``flash_attn.cute`` so) stays reachable.

Upstream: none; ``flash_attn`` is a third-party name. Can go when programs ask PyTorch instead.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from cuda_morph.ecosystem.flash_attn.finder import NAME, StandInFinder

if TYPE_CHECKING:
    from cuda_morph.patching import Journal


def offer_stand_in(journal: Journal) -> None:
    """Lets ``import flash_attn`` find the stand-in until the journal is rolled back."""
    finder = StandInFinder()
    sys.meta_path.insert(0, finder)

    def undo() -> None:
        sys.meta_path.remove(finder)
        _forget_stand_in()

    journal.on_rollback(undo)


def _forget_stand_in() -> None:
    """Takes the stand-in's modules out of the table, so that a later import starts anew."""
    package = sys.modules.get(NAME)
    if package is None or not StandInFinder.made(package):
        return
    for name in [*sys.modules]:
        if name == NAME or name.startswith(f"{NAME}."):
            del sys.modules[name]
