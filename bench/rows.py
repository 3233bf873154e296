"""One measured line of the report and the budget it is held against."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a row may cost.

    ``ratio``: measured over baseline. ``extra``: measured minus baseline. ``most``: measured.
    ``none``: shown without a limit.
    """

    kind: str
    limit: float = 0.0

    def text(self, unit: str) -> str:
        """Returns the budget in words."""
        if self.kind == "ratio":
            return f"<= {self.limit:.2f} x"
        if self.kind == "extra":
            return f"<= +{self.limit:g} {unit}"
        return f"<= {self.limit:g} {unit}".rstrip() if self.kind == "most" else "-"


RATIO_OF_BYSTANDERS = Budget(kind="ratio", limit=1.02)
NO_BUDGET = Budget(kind="none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measurement."""

    family: str
    name: str
    where: str
    """Tier, view and backend, or the kind of process."""
    measured: float
    unit: str
    budget: Budget
    baseline: float | None = None
    paired: float | None = None
    """Median over neighbouring blocks of measured/baseline, or of their difference."""
    lowest: float | None = None
    """Lower end of the 99 % confidence interval of that median."""
    spread: float | None = None
    """Interquartile range of that over the blocks, or of the samples; in units of the result."""
    samples: int = 0
    note: str = ""

    @property
    def result(self) -> float:
        """The number that is held against the budget, from the smallest blocks."""
        if self.budget.kind == "extra":
            return self.measured - (self.baseline or 0.0)
        if self.budget.kind == "ratio":
            return self.measured / (self.baseline or 1.0)
        return self.measured

    @property
    def passes(self) -> bool:
        """Whether the budget is kept.

        Of two estimates, from the smallest blocks and from neighbouring pairs, noise of the
        machine rarely moves both, and a slowdown does. A miss is what is over the limit in the
        first and, with 99 % confidence, in the second.
        """
        if self.budget.kind == "none":
            return True
        best = self.result if self.lowest is None else min(self.result, self.lowest)
        return best <= self.budget.limit

    def as_dict(self) -> dict[str, Any]:
        """Returns the row in JSON-ready form."""
        return {**asdict(self), "result": self.result, "passes": self.passes}


@dataclass(slots=True, kw_only=True)
class Effort:
    """How long to measure."""

    rounds: int
    """Alternations of native and active blocks."""
    processes: int
    """Fresh processes for each start-up time."""
    toggles: int
    backends: tuple[str, ...] = ()
    """Backends that can be activated here."""
    tiers: tuple[str, ...] = ()
    """Interception tiers that work here, of those with a budget."""


FULL = Effort(rounds=60, processes=15, toggles=10_000)
QUICK = Effort(rounds=12, processes=2, toggles=200)
