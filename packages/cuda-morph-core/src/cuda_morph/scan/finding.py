"""What a scan reports: one place in one file, the rule it falls under, and how hard it is."""

from __future__ import annotations

from enum import Enum

from cuda_morph.frozen_record import frozen_record


class Verdict(str, Enum):
    """What happens to a CUDA dependence on the target."""

    UNCHANGED = "works unchanged"
    """The code means the same without any shim."""
    REDIRECTED = "redirected"
    """The accelerator's own function answers while cuda-morph is active."""
    EMULATED = "emulated"
    """Answered from other functions, or accepted without effect; the note says which."""
    REWRITABLE = "rewritable"
    """Has a device-neutral or vendor form that somebody must write."""
    UNSUPPORTED = "unsupported"
    UNKNOWN = "unknown"


class Effort(str, Enum):
    """Work that is left for a person."""

    NONE = "none"
    MINUTES = "minutes"
    HOURS = "hours"
    REWRITE = "rewrite"


@frozen_record
class Place:
    """A range of one file; lines and columns count from 1, columns in characters."""

    line: int
    column: int = 1
    end_line: int = 0
    end_column: int = 0
    cell: int | None = None
    """Number of the cell in a notebook; the line counts within it."""


@frozen_record
class Finding:
    """One CUDA dependence."""

    rule: str
    place: Place
    symbol: str
    """The dependence itself: a qualified name, a device string, a package."""
    detail: str = ""
    """What distinguishes this one, such as the expression that was compared."""
    excerpt: str = ""
    """The source line, shortened."""
