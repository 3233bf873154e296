"""The checklist: one module per subject, read in the order of `MODULES`."""

from __future__ import annotations

from importlib import import_module

MODULES = (
    "loads_discovery",
    "loads_import",
    "loads_records",
    "loads_detection",
    "loads_claims",
    "loads_activation",
)


def load_all() -> None:
    """Import every module of checks, which fills the registry."""
    for module in MODULES:
        import_module(f"{__name__}.{module}")
