"""The checklist: every module of this package is read, and needs no entry in a list."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from cuda_morph_conformance.registry import CHECKS


def load_all() -> None:
    """Import every module of checks, which fills the registry, and put the registry in order.

    The order is that of the checklist: by level, area and number, whatever the files are called.
    """
    for module in sorted(item.name for item in pkgutil.iter_modules(__path__)):
        import_module(f"{__name__}.{module}")
    ordered = sorted(CHECKS.values(), key=lambda check: check.order)
    CHECKS.clear()
    CHECKS.update((check.id, check) for check in ordered)
