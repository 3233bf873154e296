"""What ``cuda_morph.info()`` and ``cuda-morph info`` report; works without torch."""

from __future__ import annotations

import platform
import sys
from dataclasses import asdict, field
from typing import Any

from cuda_morph import environment, torch_facts
from cuda_morph.frozen_record import frozen_record


@frozen_record
class Info:
    """State of cuda-morph in this process."""

    version: str
    python: str
    torch: str | None
    """Installed version; torch need not be imported."""
    torch_tested: bool
    active: bool
    backend: str | None = None
    requested: str | None = None
    """What `activate` would be given to get the same, e.g. ``sim:mychip``."""
    device_type: str | None = None
    simulated: bool | None = None
    view: str | None = None
    tier: str | None = None
    tier_reasons: dict[str, str] = field(default_factory=dict)
    """Why faster tiers are not used."""
    device_count: int = 0
    limits: list[str] = field(default_factory=list)
    mappings: dict[str, int] = field(default_factory=dict)
    """Number of CUDA names by treatment."""
    changes: int = 0
    settings: dict[str, str] = field(default_factory=dict)
    """The CUDA_MORPH_* variables that are set."""
    native: str = ""
    """State of the compiled tier's package."""

    def as_dict(self) -> dict[str, Any]:
        """Returns the report in JSON-ready form."""
        return asdict(self)


def info() -> Info:
    """Returns the state of cuda-morph in this process, without importing torch."""
    import os

    from cuda_morph import get_version
    from cuda_morph.activation import current, is_active

    version = torch_facts.torch_version()
    common: dict[str, Any] = {
        "version": get_version(),
        "python": platform.python_version(),
        "torch": version,
        "torch_tested": version is not None and torch_facts.is_tested(version),
        "active": is_active(),
        "settings": {
            variable.name: os.environ[variable.name]
            for variable in environment.VARIABLES
            if variable.name in os.environ
        },
        "native": native_state(),
    }
    activation = current()
    if activation is None:
        return Info(**common)
    return Info(
        **common,
        backend=activation.backend.name,
        requested=activation.requested,
        device_type=activation.backend.device_type,
        simulated=activation.backend.simulated,
        view=activation.view,
        tier=activation.tier,
        tier_reasons=dict(activation.tier_reasons),
        device_count=activation.device_count,
        limits=list(activation.limits),
        mappings=activation.counts,
        changes=activation.changes,
    )


def native_state() -> str:
    """Says whether the compiled tier can be loaded, without importing torch."""
    if sys.implementation.name != "cpython":
        return "not usable: needs CPython"
    try:
        import cuda_morph_native
    except ImportError:
        return "not installed"
    return "loaded" if cuda_morph_native.AVAILABLE else cuda_morph_native.REASON
