"""Operators run in a process of their own: one that ends or blocks it is an outcome, not the end.

The process is started once and does all the operators. After a crash another one goes on with the
next dtype or direction of the same operator, after a time-out with the next operator.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cuda_morph.chosen_device import ChosenDevice, refuse_cpu
from cuda_morph.errors import BackendUnavailableError, MorphError
from cuda_morph.frozen_record import frozen_record
from cuda_morph.verification.comparison import Error
from cuda_morph.verification.outcomes import (
    CRASHED,
    FORWARD,
    HOST,
    NOT_RUN,
    TIMED_OUT,
    Case,
    OperatorResult,
    Place,
)
from cuda_morph.verification.report import VerifyReport
from cuda_morph.verification.worker import NO_CPU
from cuda_morph.worker_process import WorkerProcess

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_morph.chosen_device import DeviceRequest

WORKER = "cuda_morph.verification.worker"

START_SECONDS = 600.0
"""For importing PyTorch and its database, and for opening the device: it may have to be built."""

_MOST_IN_A_ROW = 20
"""Processes that may end one after the other without a comparison between; then the device is
taken for lost."""


@frozen_record
class Order:
    """What to verify."""

    request: DeviceRequest
    ops: str | None
    """Regular expression for names of operators."""
    dtypes: tuple[str, ...]
    quick: bool
    samples: int
    seconds: float
    """For one operator."""


def verify(order: Order, progress: Callable[[int, int], None]) -> VerifyReport:
    """Compares operators, each safely.

    Args:
        order: What to do.
        progress: Told how many operators are done, and of how many.

    Returns:
        The outcome of every operator.

    Raises:
        MorphError: The device cannot be used, or no operator is meant.
    """
    refuse_cpu(order.request.device_type, NO_CPU)
    run = _Run(order, progress)
    while not run.done:
        run.continue_in_new_process()
    return run.report()


class _Run:
    """What is known so far; every process adds to it."""

    def __init__(self, order: Order, progress: Callable[[int, int], None]) -> None:
        self._order, self._progress = order, progress
        self._device: dict[str, Any] = {}
        self._names: list[str] = []
        self._results: list[OperatorResult] = []
        self._current: OperatorResult | None = None
        """The operator that is not done yet; a crash leaves it so."""
        self._place: Place | None = None
        self._after: tuple[str, str] | None = None
        """Dtype and direction in which the operator crashed; it goes on with the next ones."""
        self._deadline: float | None = None
        """Of the operator that runs in the present process."""
        self._in_a_row = 0
        self.done = False

    def report(self) -> VerifyReport:
        """Returns the outcome."""
        return VerifyReport(
            device=ChosenDevice(**self._device),
            dtypes=self._order.dtypes,
            results=tuple(self._results),
        )

    def continue_in_new_process(self) -> None:
        """Runs operators until all are done, or one ends the process or is late."""
        self._deadline = self._place = None
        refused: MorphError | None = None
        child = WorkerProcess(WORKER, [self._message()])
        try:
            while (answer := child.answer(self._seconds_left())) is not None:
                refused = self._take(**answer) or refused
        except BaseException:
            child.stop(at_once=True)
            raise
        end = child.stop() or "it ended its process"
        if refused is not None:
            end = refused.message
            if not self._names:
                raise refused
        if not self.done:
            self._lose(f"{end}: {child.last_words}" if child.last_words else end, late=child.late)

    def _message(self) -> str:
        order = self._order
        return json.dumps(
            {
                "request": asdict(order.request),
                "ops": order.ops,
                "quick": order.quick,
                "dtypes": order.dtypes,
                "samples": order.samples,
                "first": len(self._results),
                "after": self._after,
            }
        )

    def _seconds_left(self) -> float:
        return START_SECONDS if self._deadline is None else self._deadline - time.monotonic()

    def _take(self, event: str, **told: Any) -> MorphError | None:
        """Takes one answer; returns the error with which the process refuses to go on."""
        if event == "error":
            return MorphError(told["message"], hint=told["hint"], code=told["code"])
        if event == "ready":
            self._device, self._names = told["device"], told["names"]
        elif event == "begin":
            self._current = self._current or OperatorResult(name=self._names[len(self._results)])
            self._deadline = time.monotonic() + self._order.seconds
        elif event == "place":
            self._place = Place(**told["record"])
        elif event == "case":
            self._add(Case(**told["record"] | {"error": Error(**told["record"]["error"])}))
            self._in_a_row = 0
        elif event == "kernels" and self._current is not None:
            self._current.kernels.update(told["origins"])
        elif event == "end":
            self._finish()
        elif event == "done":
            self.done = True
        self._progress(len(self._results), len(self._names))
        return None

    def _add(self, case: Case) -> None:
        if self._current is not None:
            self._current.cases.append(case)

    def _finish(self) -> None:
        if self._current is not None:
            self._results.append(self._current)
        self._current = self._after = self._deadline = self._place = None

    def _lose(self, end: str, *, late: bool) -> None:
        """Notes what the end of a process means for its operator, and for those that follow."""
        if not self._names:
            raise BackendUnavailableError(
                f"The process that opens the device and runs the operators did not start: {end}.",
                hint="cuda-morph doctor --full looks at each plugin and its device by itself.",
            )
        self._in_a_row += 1
        if self._deadline is None:  # it had not come to an operator: the device may be gone
            self._in_a_row += _MOST_IN_A_ROW // 4
        else:
            self._note(end, TIMED_OUT if late else CRASHED)
        if self._in_a_row >= _MOST_IN_A_ROW:
            self._give_up(end)

    def _note(self, end: str, status: str) -> None:
        place = self._place or Place(
            dtype=self._order.dtypes[0], direction=FORWARD, number=0, where=HOST
        )
        whose = "in PyTorch on the CPU, not on the device: " if place.where == HOST else ""
        said = f"no result within {self._order.seconds:g} s" if status == TIMED_OUT else end
        self._add(
            Case(
                dtype=place.dtype,
                direction=place.direction,
                number=place.number,
                status=status,
                reference="",
                detail=whose + said,
            )
        )
        if status == TIMED_OUT or self._place is None:
            self._finish()
        else:
            self._after = (place.dtype, place.direction)

    def _give_up(self, end: str) -> None:
        self._finish()
        why = f"the device did not come back after crashes; the last: {end}"
        for name in self._names[len(self._results) :]:
            case = Case(dtype="", direction="", number=0, status=NOT_RUN, reference="", detail=why)
            self._results.append(OperatorResult(name=name, cases=[case]))
        self.done = True
        self._progress(len(self._results), len(self._names))
