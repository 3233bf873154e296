"""The closed lists of words that reports use."""

from __future__ import annotations

from enum import Enum

CHECKLIST = "1.0"
"""Version of the checklist, apart from those of the suite and of core.

A new check raises the minor; a sentence that asks for something else raises the major.
"""

AREAS = {
    "LOAD": "Loading",
    "DEV": "Devices",
    "STR": "Device strings",
    "API": "torch.cuda by name",
    "MEM": "Memory",
    "STRM": "Streams",
    "EVT": "Events",
    "RNG": "Random numbers",
    "DTYP": "Data types",
    "GRAD": "Autograd",
    "OPT": "Optimizers",
    "AMP": "Mixed precision",
    "IO": "Checkpoints and data",
    "ERR": "Errors",
    "VIEW": "Views",
    "PROC": "Processes",
    "REV": "Reversibility",
    "OVH": "Overhead",
    "DIST": "Collectives",
    "DDP": "Data parallel training",
    "FSDP": "Sharded training",
    "ATTN": "Attention",
    "COMP": "Compilation",
    "GRPH": "Graphs",
    "EXT": "Extensions",
}
"""What the middle part of a check's id stands for, in the order of reports."""

VIEWS = ("native", "cuda")
"""Whose names the code sees; see `cuda_morph.activate`."""


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
    """An accelerator whose devices, driver and SDK are recorded."""
    NONE = "none"
    """No check used a device, or nothing recorded shows which."""


class Seen(str, Enum):
    """What happened when a check was due, before claims and waivers are looked at."""

    PASSED = "passed"
    FAILED = "failed"
    """Its sentence did not hold, it raised, it crashed or it did not end."""
    SKIPPED = "skipped"
    """It began, and said that it cannot be made here."""
    ABSENT = "absent"
    """It never began."""


class Outcome(str, Enum):
    """What a check counts as, after claims and waivers; `outcomes.judge` is the rule."""

    PASSED = "passed"
    FAILED = "failed"
    MISSING = "missing"
    """It did not run. A check that did not run never counts as passed."""
    UNSUPPORTED = "unsupported"
    """It failed, and the plugin says that it does not do this."""
    UNDERDECLARED = "underdeclared"
    """It passed although the plugin says that it does not do this."""
    WAIVED = "waived"
    """It failed for a reason that a waiver names."""
