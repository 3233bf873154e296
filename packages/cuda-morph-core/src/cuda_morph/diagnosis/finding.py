"""One answer of ``cuda-morph doctor``."""

from __future__ import annotations

from dataclasses import asdict
from enum import Enum
from typing import TYPE_CHECKING

from cuda_morph.frozen_record import frozen_record

if TYPE_CHECKING:
    from collections.abc import Iterable


class Level(str, Enum):
    """How a thing stands."""

    OK = "ok"
    WARN = "warn"
    """Works, and may not do what the user wants."""
    FAIL = "fail"
    UNKNOWN = "unknown"
    """Could not be decided here."""


@frozen_record
class Finding:
    """One thing that was looked at."""

    id: str
    """Area and subject, e.g. ``settings.CUDA_MORPH_VIEW``."""
    level: Level
    message: str
    fix: str = ""
    """The next step; empty where nothing is to be done."""
    source: str = ""
    """Where a claim about versions comes from."""

    def as_dict(self) -> dict[str, str]:
        """Returns the finding as JSON-ready values."""
        return asdict(self) | {"level": self.level.value}


def any_failed(findings: Iterable[Finding]) -> bool:
    """Tells whether one of the findings says that something does not work."""
    return any(finding.level is Level.FAIL for finding in findings)


def count(findings: Iterable[Finding]) -> dict[str, int]:
    """Counts findings by level.

    Args:
        findings: Any number of them.

    Returns:
        Every level's name with its number.
    """
    numbers = {level.value: 0 for level in Level}
    for finding in findings:
        numbers[finding.level.value] += 1
    return numbers
