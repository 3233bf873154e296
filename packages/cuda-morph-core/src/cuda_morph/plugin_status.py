"""The status row of a plugin: every plugin that is found has one, also when it is broken."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from cuda_morph.frozen_record import frozen_record

if TYPE_CHECKING:
    from cuda_morph.records import Backend, Detection


class PluginStatus(str, Enum):
    """How a plugin stands."""

    READY = "ready"
    """Loaded; where detection was asked for, the accelerator is there."""
    UNAVAILABLE = "unavailable"
    """Loaded, but detection found no usable accelerator."""
    BROKEN = "broken"
    """Cannot be imported, or broke the contract of a hook."""
    INCOMPATIBLE = "incompatible"
    """Written for another major version of the specification."""
    CONFLICT = "conflict"
    """Another distribution claims the same name."""
    BLOCKED = "blocked"
    """Switched off by an environment variable; not imported."""


USABLE = frozenset({PluginStatus.READY, PluginStatus.UNAVAILABLE})
"""Statuses whose hooks may be called."""

FAULTY = frozenset({PluginStatus.BROKEN, PluginStatus.INCOMPATIBLE, PluginStatus.CONFLICT})
"""Statuses that are errors in strict mode."""


@frozen_record
class PluginRow:
    """What is known of one plugin."""

    name: str
    """Name of the entry point."""
    status: PluginStatus
    dist: str
    """Distribution that brings the plugin."""
    version: str | None = None
    """Version of the distribution, ``None`` when its metadata does not say."""
    entry_point: str = ""
    """Module or object the entry point names."""
    builtin: bool = False
    """True for a plugin that is part of core."""
    spec: str | None = None
    """Version of the specification the plugin speaks; ``None`` when it was not read."""
    backend: Backend | None = None
    hooks: tuple[str, ...] = ()
    """Names of the hooks it implements."""
    detection: Detection | None = None
    """Answer of the last detection, ``None`` when it was not asked."""
    reason: str = ""
    """Why the status is not ``ready``, in words."""
    error: BaseException | None = None
    """The exception behind the reason, kept for a full report."""
    notes: tuple[str, ...] = ()
    load_seconds: float = 0.0
    detect_seconds: float | None = None
    """How long the last detection took."""

    def as_dict(self) -> dict[str, object]:
        """Returns the row as JSON-ready values."""
        detection = self.detection
        return {
            "name": self.name,
            "status": self.status.value,
            "dist": self.dist,
            "version": self.version,
            "entry_point": self.entry_point,
            "builtin": self.builtin,
            "spec": self.spec,
            "display_name": self.backend.display_name if self.backend else None,
            "device_type": self.backend.device_type if self.backend else None,
            "simulated": self.backend.simulated if self.backend else None,
            "hooks": list(self.hooks),
            "available": detection.available if detection else None,
            "device_count": detection.device_count if detection else None,
            "details": dict(detection.details) if detection else {},
            "reason": self.reason,
            "error": type(self.error).__name__ if self.error else None,
            "notes": list(self.notes),
            "load_seconds": self.load_seconds,
            "detect_seconds": self.detect_seconds,
        }
