"""What one run found out: a result per check, and the verdict over all of them."""

from __future__ import annotations

import platform
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version

from cuda_morph.records import Support
from cuda_morph_conformance.outcomes import judge
from cuda_morph_conformance.registry import CHECKS
from cuda_morph_conformance.vocabulary import CHECKLIST, Evidence, Level, Outcome, Seen

DISTRIBUTION = "cuda-morph-conformance"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Outcome of one check."""

    id: str
    view: str | None = None
    seen: Seen
    message: str = ""
    """What was seen, when it did not pass."""
    seconds: float = 0.0

    @property
    def key(self) -> tuple[str, str | None]:
        """What tells it from every other result of one plugin."""
        return (self.id, self.view)

    @property
    def outcome(self) -> Outcome:
        """What it counts as."""
        return judge(self.seen, Support.FULL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Which plugin was examined, as installed here."""

    plugin: str
    dist: str | None = None
    version: str | None = None
    simulated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All results of one plugin."""

    identity: Identity
    results: tuple[Result, ...]
    environment: dict[str, str | None] = field(default_factory=dict)

    @property
    def level(self) -> Level | None:
        """The highest level with every check of it, and of the ones below, passed."""
        reached = None
        for level in Level:
            own = [result for result in self.results if CHECKS[result.id].level is level]
            expected = [check for check in CHECKS.values() if check.level is level]
            if not expected or len(own) != len(expected):
                break
            if any(result.outcome is not Outcome.PASSED for result in own):
                break
            reached = level
        return reached

    @property
    def evidence(self) -> Evidence | None:
        """What stood behind the device; ``None`` while no check that passed used one.

        Hardware is never inferred: that needs a record of device, driver and SDK, which the checks
        that use a device will bring.
        """
        used = any(
            CHECKS[result.id].devices and result.outcome is Outcome.PASSED
            for result in self.results
        )
        return Evidence.SIMULATED if used and self.identity.simulated else None

    @property
    def clean(self) -> bool:
        """True when every check passed."""
        return all(result.outcome is Outcome.PASSED for result in self.results)

    def count(self, outcome: Outcome) -> int:
        """Returns how many checks had the outcome."""
        return sum(result.outcome is outcome for result in self.results)

    def as_dict(self) -> dict[str, object]:
        """Returns the report in a form ready for JSON."""
        return {
            "suite": version(DISTRIBUTION),
            "checklist": CHECKLIST,
            "plugin": asdict(self.identity),
            "level": self.level,
            "evidence": self.evidence,
            "counts": {outcome.value: self.count(outcome) for outcome in Outcome},
            "environment": self.environment,
            "checks": [
                {
                    **asdict(result),
                    "outcome": result.outcome,
                    "level": CHECKS[result.id].level,
                    "must": CHECKS[result.id].must,
                }
                for result in self.results
            ],
        }


def describe_environment() -> dict[str, str | None]:
    """Returns what the checks ran on: Python, platform and the torch and core in use."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "torch": _version("torch"),
        "cuda-morph-core": _version("cuda-morph-core"),
    }


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
