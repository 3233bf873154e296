"""What one run found out: a result per check and view, and the verdict over all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from cuda_morph.records import Support
from cuda_morph_conformance.facts import Facts, decide_evidence
from cuda_morph_conformance.outcomes import holds, is_mandatory, judge, reached, weakest
from cuda_morph_conformance.registry import CHECKS
from cuda_morph_conformance.vocabulary import Evidence, Level, Outcome, Seen
from cuda_morph_conformance.waivers import Waiver, current_day, find_waiver

if TYPE_CHECKING:
    import datetime as dt

    from cuda_morph_conformance.registry import Check


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What was seen of one check in one view."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A result, with what it counts as."""

    result: Result
    check: Check
    claim: Support
    """The weakest claim about what the check requires."""
    waiver: Waiver | None
    outcome: Outcome

    @property
    def mandatory(self) -> bool:
        """True when a plugin cannot decline it and reach the check's level."""
        return is_mandatory(self.check.requires)

    @property
    def holds(self) -> bool:
        """False when it keeps the plugin from the level of the check."""
        return holds(self.outcome, mandatory=self.mandatory)

    @property
    def note(self) -> str:
        """What the plugin's author should do although nothing failed."""
        if self.outcome is Outcome.UNDERDECLARED:
            return f"it passes, and the plugin says {self.claim.value}: please claim it"
        if self.outcome is Outcome.PASSED and self.claim is Support.UNKNOWN:
            return "it passes, and the plugin says nothing about it: please claim it"
        return ""


@dataclass(frozen=True, kw_only=True)
class Report:
    """All results of one plugin."""

    facts: Facts
    results: tuple[Result, ...]
    complete: bool = False
    """True when the whole checklist was due."""
    waivers: tuple[Waiver, ...] = ()
    today: dt.date = field(default_factory=current_day)
    environment: dict[str, str | None] = field(default_factory=dict)
    seconds: float = 0.0

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Every result with what it counts as, in the order of the checklist."""
        return tuple(self._verdict(result) for result in self.results)

    @cached_property
    def level(self) -> Level | None:
        """The highest level with every check of it, and of the ones below, in every view."""
        return reached(
            (check.level, (check.id, view) in self._held)
            for check in CHECKS.values()
            for view in check.views or (None,)
        )

    @cached_property
    def evidence(self) -> Evidence:
        """What stood behind the device."""
        used = any(
            verdict.result.seen is Seen.PASSED and verdict.check.level is not Level.LOADS
            for verdict in self.verdicts
        )
        return decide_evidence(self.facts, used=used)

    @property
    def clean(self) -> bool:
        """True when nothing failed and nothing is missing."""
        return not self.count(Outcome.FAILED) and not self.count(Outcome.MISSING)

    def count(self, outcome: Outcome) -> int:
        """Returns how many results had the outcome."""
        return sum(verdict.outcome is outcome for verdict in self.verdicts)

    @cached_property
    def _held(self) -> frozenset[tuple[str, str | None]]:
        return frozenset(verdict.result.key for verdict in self.verdicts if verdict.holds)

    def _verdict(self, result: Result) -> Verdict:
        check = CHECKS[result.id]
        claim = weakest(self.facts.support, check.requires)
        waiver = find_waiver(
            self.waivers,
            result.id,
            result.view,
            plugin=self.facts.plugin,
            version=self.facts.version,
            today=self.today,
        )
        # A waiver for what passes waives nothing, and should be dropped.
        waived = waiver is not None and result.seen is not Seen.PASSED
        outcome = judge(result.seen, claim, waived=waived)
        return Verdict(
            result=result,
            check=check,
            claim=claim,
            waiver=waiver if outcome is Outcome.WAIVED else None,
            outcome=outcome,
        )
