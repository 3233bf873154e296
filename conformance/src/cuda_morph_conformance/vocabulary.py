"""The closed lists of words that reports use."""

from __future__ import annotations

from enum import Enum

CHECKLIST = "0.1"
"""Version of the checklist, apart from that of the suite: 0.x may still change its sentences."""


class Level(str, Enum):
    """How far a plugin goes; each level includes the ones before it."""

    LOADS = "loads"
    """Found, isolated, typed and reversible; no device needed."""
    RUNS = "runs"
    """Inference on one device, unchanged."""
    TRAINS = "trains"
    """Training gives what the CPU gives, within the checklist's tolerances."""
    SCALES = "scales"
    """Collectives and data parallelism over several devices."""
    ACCELERATES = "accelerates"
    """Fused attention, compilation and graphs are really used."""

    @property
    def rank(self) -> int:
        """Position in the order of levels, from 0."""
        return list(Level).index(self)


class Evidence(str, Enum):
    """What stood behind the device that a result was measured on."""

    SIMULATED = "simulated"
    RUNTIME_SIMULATED = "runtime-simulated"
    """The vendor's own software over a simulated runtime."""
    HARDWARE = "hardware"


class Outcome(str, Enum):
    """What became of one check."""

    PASSED = "passed"
    FAILED = "failed"
    MISSING = "missing"
    """It did not run. A check that did not run never counts as passed."""
