"""What came of the comparisons of an operator, also of one that took its process along."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from cuda_morph.frozen_record import frozen_record
from cuda_morph.verification.comparison import Error

PASS, FAIL, UNSUPPORTED = "pass", "fail", "unsupported"
PARTLY = "partly"
"""What is supported passes, and some of the operator is not supported."""
SKIPPED = "skipped"
"""The CPU has no reference for any case."""
CRASHED = "crashed"
"""It ended the process that it ran in."""
TIMED_OUT = "timed out"
"""It gave no result within its time."""
NOT_RUN = "not run"
"""The device did not come back after others had crashed."""

LOST = (CRASHED, TIMED_OUT)
FORWARD, GRADIENT = "forward", "gradient"
DEVICE, HOST = "the device", "the CPU"


@frozen_record
class Place:
    """Where a run is: told before anything that could end the process."""

    dtype: str
    direction: str
    number: int
    where: str
    """`DEVICE`, or `HOST` while PyTorch makes the sample or computes the reference."""


@frozen_record
class Case:
    """One comparison."""

    dtype: str
    direction: str
    number: int
    status: str
    reference: str
    error: Error = Error()
    detail: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Returns the case in JSON-ready form."""
        return {
            "dtype": self.dtype,
            "direction": self.direction,
            "sample": self.number,
            "status": self.status,
            "reference": self.reference,
            "absolute_error": _finite(self.error.absolute),
            "share_of_tolerance": _finite(self.error.share),
            "detail": self.detail,
        }


def _finite(value: float) -> float | None:
    """JSON has no infinity: two finite numbers may lie further apart than a third can say."""
    return value if math.isfinite(value) else None


@dataclass(slots=True, kw_only=True)
class OperatorResult:
    """Outcome of one entry of the database."""

    name: str
    cases: list[Case] = field(default_factory=list)
    kernels: dict[str, str] = field(default_factory=dict)
    """Operators that ran on the device, and the origin of their kernels."""

    def count(self, status: str) -> int:
        """Returns how many cases ended so."""
        return sum(case.status == status for case in self.cases)

    @property
    def status(self) -> str:
        """The operator's status; one failure decides, and the worst kind of failure."""
        for worst in (*LOST, FAIL, NOT_RUN):
            if self.count(worst):
                return worst
        passed, missing = self.count(PASS), self.count(UNSUPPORTED)
        if passed and missing:
            return PARTLY
        return PASS if passed else UNSUPPORTED if missing else SKIPPED

    @property
    def kernel(self) -> str:
        """``native``, ``fallback`` or ``unknown``: a fallback anywhere counts."""
        origins = set(self.kernels.values())
        if "fallback" in origins:
            return "fallback"
        return "native" if "own" in origins else "unknown"

    @property
    def worst(self) -> Case | None:
        """The case that used most of its tolerance; a failure before any other."""
        measured = [case for case in self.cases if case.status in (PASS, FAIL)]
        if not measured:
            return None
        return max(measured, key=lambda case: (case.status == FAIL, case.error.share))
