"""Timing of short statements in alternating blocks of one process.

Each round times every statement once natively and once actively, so both meet the same weather:
clock frequency, neighbours on the machine, state of the allocator. The order alternates. A block
takes about half a millisecond of CPU time of its own thread, so a block that the scheduler
interrupts is not counted as slow. Code objects are made anew for every block: what the interpreter
learned about a statement in one state must not slow it down in the other. Native blocks come after
an activation that was taken back: so much work just before slows the next half millisecond down by
2 to 4 %, in whichever state it is.
"""

from __future__ import annotations

import gc
import math
import statistics
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rows import Budget, Row

if TYPE_CHECKING:
    import types
    from collections.abc import Callable

BLOCK_SECONDS = 0.0005
UNROLL = 5
"""Copies of the statement in the loop's body; the loop itself then costs about 2 ns a call."""


@dataclass(slots=True, kw_only=True)
class Case:
    """A statement for each of the two states, and the times of its blocks in seconds a call."""

    name: str
    native: str
    active: str
    budget: Budget
    unit: str = "ns"
    calls: int = 0
    natives: list[float] = field(default_factory=list)
    actives: list[float] = field(default_factory=list)

    def row(self, family: str, where: str) -> Row:
        """Returns what was measured so far."""
        scale = {"ns": 1e9, "us": 1e6}[self.unit]
        pairs = list(zip(self.natives, self.actives, strict=True))
        if self.budget.kind == "ratio":
            compared = [active / native for native, active in pairs]
        else:
            compared = [scale * (active - native) for native, active in pairs]
        quarters = statistics.quantiles(compared, n=4)
        return Row(
            family=family,
            name=self.name,
            where=where,
            baseline=scale * min(self.natives),
            measured=scale * min(self.actives),
            unit=self.unit,
            budget=self.budget,
            paired=statistics.median(compared),
            lowest=_lowest_median(compared),
            spread=quarters[2] - quarters[0],
            samples=len(compared),
        )


def _lowest_median(values: list[float]) -> float:
    """Returns the lower end of the median's one-sided 99 % confidence interval.

    By order statistics, so that no shape of the noise is assumed.
    """
    rank = int(len(values) / 2 - 2.326 * math.sqrt(len(values)) / 2)
    return sorted(values)[max(0, rank)]


def _loop(statement: str, namespace: dict[str, Any]) -> types.FunctionType:
    body = "\n        ".join([statement] * UNROLL)
    code = f"def loop(clock, times):\n    start = clock()\n    for _ in times:\n        {body}\n"
    made: dict[str, Any] = {}
    exec(code + "    return clock() - start\n", namespace, made)
    loop: types.FunctionType = made["loop"]
    return loop


class Bench:
    """Runs cases in alternating blocks.

    Args:
        cases: What to time.
        namespace: Names that the statements use; extended by the functions themselves.
        enter: Makes the second state, e.g. activates.
        leave: Goes back to the first one.
        clock: CPU time of the thread, or wall time where other threads do the work.
    """

    def __init__(
        self,
        cases: list[Case],
        namespace: dict[str, Any],
        enter: Callable[[], object],
        leave: Callable[[], object],
        clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self.cases = cases
        self.namespace = namespace
        self.enter, self.leave, self.clock = enter, leave, clock

    def run(self, rounds: int) -> None:
        """Adds rounds to the samples of every case."""
        self._calibrate()
        for number in range(rounds):
            if number % 2:
                self._active()
                self._native()
            else:
                self._native()
                self._active()
            gc.collect()

    def _calibrate(self) -> None:
        for case in self.cases:
            if not case.calls:
                loop = _loop(case.native, self.namespace)
                loop(self.clock, range(20))
                seconds = min(loop(self.clock, range(20)) for _ in range(3)) / 20
                case.calls = max(2, int(BLOCK_SECONDS / max(seconds, 1e-9)))

    def _block(self, statement: str, calls: int) -> float:
        loop = _loop(statement, self.namespace)
        loop(self.clock, range(max(2, calls // 10)))
        return float(loop(self.clock, range(calls))) / (calls * UNROLL)

    def _native(self) -> None:
        self.enter()
        self.leave()
        gc.disable()
        for case in self.cases:
            case.natives.append(self._block(case.native, case.calls))
        gc.enable()

    def _active(self) -> None:
        self.enter()
        try:
            gc.disable()
            for case in self.cases:
                case.actives.append(self._block(case.active, case.calls))
        finally:
            gc.enable()
            self.leave()


def measure(bench: Bench, family: str, where: str, rounds: int) -> list[Row]:
    """Measures, and measures up to twice more while a row is over its budget.

    More samples narrow both estimates; a real slowdown stays.
    """
    rows: list[Row] = []
    for _ in range(3):
        bench.run(rounds)
        rows = [case.row(family, where) for case in bench.cases]
        if all(row.passes for row in rows):
            break
    return rows
