"""The outcome of a verification: totals, table, JSON and page."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from cuda_morph import get_version, report_page
from cuda_morph.frozen_record import frozen_record
from cuda_morph.torch_facts import torch_version
from cuda_morph.verification import references
from cuda_morph.verification.comparison import TOLERANCES
from cuda_morph.verification.outcomes import (
    CRASHED,
    FAIL,
    LOST,
    NOT_RUN,
    PARTLY,
    PASS,
    SKIPPED,
    TIMED_OUT,
    UNSUPPORTED,
)

if TYPE_CHECKING:
    from cuda_morph.chosen_device import ChosenDevice
    from cuda_morph.verification.outcomes import OperatorResult

COLUMNS = ("operator", "status", "kernel", "pass", "fail", "unsupported", "worst error", "where")

_ORDER = (CRASHED, TIMED_OUT, FAIL, NOT_RUN, UNSUPPORTED, PARTLY, PASS, SKIPPED)
_SIMULATED = "Simulated: no accelerator took part; agreement says nothing about hardware."
_REFERENCE = (
    "The reference is the CPU in 64 bits. Where the CPU's own result in the same dtype is not "
    "within tolerance of that, or the operator means something else there, its result is a "
    "reference too; of random operators only shape and dtype are compared."
)


@frozen_record
class VerifyReport:
    """What a verification found."""

    device: ChosenDevice
    dtypes: tuple[str, ...]
    results: tuple[OperatorResult, ...]

    def operators(self) -> dict[str, int]:
        """Returns operators by status."""
        found = Counter(result.status for result in self.results)
        return {status: found[status] for status in _ORDER}

    def cases(self) -> dict[str, int]:
        """Returns comparisons by status."""
        return {
            status: sum(result.count(status) for result in self.results)
            for status in (PASS, FAIL, UNSUPPORTED, *LOST)
        }

    def references(self) -> dict[str, int]:
        """Returns comparisons by what the device's result was held against."""
        found = Counter(case.reference for result in self.results for case in result.cases)
        kinds = (references.FLOAT64, references.SAME_DTYPE, references.SHAPE_ONLY)
        return {kind: found[kind] for kind in kinds}

    def kernels(self) -> dict[str, int]:
        """Returns operators that ran on the device by whose kernels they use."""
        ran = [result for result in self.results if result.count(PASS)]
        return dict(Counter(result.kernel for result in ran))

    @property
    def ok(self) -> bool:
        """Whether something passed, and nothing failed or was lost."""
        bad = sum(self.operators()[status] for status in (FAIL, NOT_RUN, *LOST))
        return self.cases()[PASS] > 0 and not bad

    def ordered(self) -> list[OperatorResult]:
        """Returns the results, failures first."""
        return sorted(self.results, key=lambda result: (_ORDER.index(result.status), result.name))

    def notes(self) -> tuple[str, ...]:
        """Returns what a reader must know, a sentence each."""
        return (*((_SIMULATED,) if self.device.simulated else ()), _REFERENCE)

    def as_dict(self) -> dict[str, Any]:
        """Returns the outcome in JSON-ready form."""
        return {
            "version": 1,
            "kind": "cuda-morph verify",
            "cuda_morph": get_version(),
            "torch": torch_version(),
            **self.device.as_dict(),
            "ok": self.ok,
            "seed": references.SEED,
            "dtypes": list(self.dtypes),
            "tolerances": {
                name: {"relative": it.relative, "absolute": it.absolute}
                for name, it in TOLERANCES.items()
                if name in self.dtypes
            },
            "operators": self.operators(),
            "cases": self.cases(),
            "references": self.references(),
            "kernels": self.kernels(),
            "notes": list(self.notes()),
            "results": [_result(result) for result in self.ordered()],
        }

    def summary(self) -> str:
        """Returns the totals in one line."""
        operators = self.operators()
        said = ", ".join(f"{count} {status}" for status, count in operators.items() if count)
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.references().items() if count)
        return (
            f"{len(self.results)} operators: {said or 'none'}; "
            f"{sum(self.references().values())} comparisons ({kinds or 'none'})."
        )

    def page(self) -> str:
        """Returns the HTML page."""
        facts = (
            ("device", self.device.label),
            ("backend", self.device.backend),
            ("dtypes", ", ".join(self.dtypes)),
            ("PyTorch", torch_version() or "unknown"),
            ("operators", self.summary()),
            ("kernels", ", ".join(f"{n} {kind}" for kind, n in self.kernels().items()) or "none"),
        )
        table = report_page.PageTable(
            title="Operators", columns=COLUMNS, rows=tuple(row(it) for it in self.ordered())
        )
        return report_page.render(
            f"cuda-morph verify: {self.device.device}",
            facts,
            (table,),
            notes=self.notes(),
            simulated=self.device.simulated,
        )


def row(result: OperatorResult) -> tuple[str, ...]:
    """Returns an operator's line of the table."""
    worst = result.worst
    return (
        result.name,
        result.status,
        result.kernel if result.count(PASS) else "-",
        *(str(result.count(status)) for status in (PASS, FAIL, UNSUPPORTED)),
        "-" if worst is None else f"{worst.error.absolute:.2g}",
        _where(result),
    )


def _where(result: OperatorResult) -> str:
    found = {case.status: case for case in reversed(result.cases)}  # the first of each
    order = (*LOST, FAIL, NOT_RUN, UNSUPPORTED)
    told = next((found[status] for status in order if status in found), result.worst)
    if told is None:
        return "the CPU has no reference"
    detail = f": {told.detail}" if told.detail else ""
    if told.status == NOT_RUN:
        return told.detail
    return f"{told.direction} {told.dtype} #{told.number}{detail}"


def _result(result: OperatorResult) -> dict[str, Any]:
    worst = result.worst
    return {
        "operator": result.name,
        "status": result.status,
        "kernel": result.kernel if result.count(PASS) else None,
        "fallbacks": sorted(name for name, kind in result.kernels.items() if kind == "fallback"),
        "worst": None if worst is None else worst.as_dict(),
        "cases": [case.as_dict() for case in result.cases],
    }
