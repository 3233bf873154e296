"""The manifest of an activation: what was chosen, what was changed, what is missing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cuda_morph.records import Backend, Treatment

if TYPE_CHECKING:
    from typing_extensions import Self

    from cuda_morph.api_table import ApiRow
    from cuda_morph.patching import Journal
    from cuda_morph.trace.recorder import Recorder
    from cuda_morph.trace.report import TraceReport
    from cuda_morph.usage import UsageCounter

PASSTHROUGH = "passthrough"
"""Tier of an activation that changes nothing because real CUDA is there."""
OFF = "off"
"""Tier of an activation that CUDA_MORPH_NO_PATCH switched off."""


@dataclass(slots=True, kw_only=True, eq=False)
class Activation:
    """What ``cuda_morph.activate`` did; leaving it as a context manager takes it back.

    Example:
        >>> import cuda_morph
        >>> with cuda_morph.activate("cpu") as activation:
        ...     activation.view
        'native'
    """

    backend: Backend
    requested: str
    """What `activate` would be given to get the same: plugin name, after the simulator's if any."""
    view: str
    tier: str
    device_count: int = 0
    rows: tuple[ApiRow, ...] = ()
    """Every CUDA name and its treatment."""
    limits: tuple[str, ...] = ()
    """What this combination of tier, view and backend does not give."""
    tier_reasons: dict[str, str] = field(default_factory=dict)
    """Why faster tiers were not used."""
    warnings: tuple[str, ...] = ()
    journal: Journal | None = field(default=None, repr=False)
    usage_counter: UsageCounter | Recorder | None = field(default=None, repr=False)
    recorder: Recorder | None = field(default=None, repr=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        from cuda_morph.activation import deactivate

        deactivate()

    @property
    def counts(self) -> dict[str, int]:
        """Number of CUDA names by treatment."""
        return dict(Counter(row.treatment.value for row in self.rows))

    @property
    def changes(self) -> int:
        """Number of reversible changes that are in force."""
        return 0 if self.journal is None else len(self.journal)

    def usage(self) -> tuple[tuple[str, str, int], ...]:
        """Returns ``(name, treatment, calls)``, most frequent first; empty without tracing."""
        if self.usage_counter is None:
            return ()
        treatments = {row.name: row.treatment.value for row in self.rows}
        return tuple(
            (name, treatments.get(name, Treatment.REDIRECT.value), calls)
            for name, calls in self.usage_counter.counts().items()
        )

    def trace(self) -> TraceReport | None:
        """Returns what was recorded so far; ``None`` unless activated with ``trace=True``."""
        if self.recorder is None:
            return None
        from cuda_morph.trace.report import build

        return build(self.recorder, self)

    def as_dict(self) -> dict[str, Any]:
        """Returns the manifest in JSON-ready form."""
        return {
            "backend": self.backend.name,
            "requested": self.requested,
            "display_name": self.backend.display_name,
            "device_type": self.backend.device_type,
            "simulated": self.backend.simulated,
            "view": self.view,
            "tier": self.tier,
            "tier_reasons": dict(self.tier_reasons),
            "device_count": self.device_count,
            "changes": self.changes,
            "counts": self.counts,
            "limits": list(self.limits),
            "warnings": list(self.warnings),
            "usage": [list(entry) for entry in self.usage()],
        }

    def summary(self) -> str:
        """Returns one line for a person."""
        if self.tier in (PASSTHROUGH, OFF):
            return f"cuda-morph: nothing changed ({self.tier})"
        plural = "s" if self.device_count != 1 else ""
        simulated = "simulated " if self.backend.simulated else ""
        return (
            f"cuda-morph: cuda -> {self.backend.device_type} "
            f"({self.device_count} {simulated}device{plural}), view {self.view}, tier {self.tier}"
        )
