"""The child process of ``cuda-morph verify``: runs operators, and tells everything at once.

Its lines are the journal of the verification: what was told is kept when an operator ends the
process, and the next process goes on behind it.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cuda_morph.chosen_device import DeviceRequest, opened, refuse_cpu
from cuda_morph.errors import MorphError
from cuda_morph.verification import database
from cuda_morph.verification.operator_run import run_operator
from cuda_morph.verification.outcomes import Case, Place
from cuda_morph.worker_process import Answers

if TYPE_CHECKING:
    from cuda_morph.verification.operator_run import Told

NO_CPU = "The CPU is the reference: comparing it with itself would prove nothing."


def main(order: str) -> None:
    """Verifies a device.

    Args:
        order: What to do, in JSON; see `cuda_morph.verification.isolation`.
    """
    answers = Answers()
    try:
        _work(answers, **json.loads(order))
        answers.tell({"event": "done"})
    except MorphError as error:
        text = {"code": error.code, "message": error.message, "hint": error.hint}
        answers.tell({"event": "error", **text})
    # Threads and exit handlers of a vendor's library have no say any more.
    os._exit(0)


def _work(
    answers: Answers,
    *,
    request: dict[str, Any],
    ops: str | None,
    quick: bool,
    dtypes: list[str],
    samples: int,
    first: int,
    after: list[str] | None,
) -> None:
    pattern = database.compile_pattern(ops)
    entries = database.choose(database.load(), pattern, quick=quick)
    with opened(DeviceRequest(**request)) as chosen:
        refuse_cpu(chosen.device.type, NO_CPU)
        names = [op.formatted_name for op in entries]
        answers.tell({"event": "ready", "device": chosen.as_dict(), "names": names})
        for number, op in enumerate(entries[first:], first):
            answers.forget_printed()
            answers.tell({"event": "begin"})
            resumed = after if number == first else None
            run_operator(
                op,
                chosen.device,
                dtypes,
                samples=samples,
                after=None if resumed is None else (resumed[0], resumed[1]),
                tell=lambda told: answers.tell(_line(told)),
            )
            answers.tell({"event": "end"})


def _line(told: Told) -> dict[str, Any]:
    if isinstance(told, (Place, Case)):
        return {"event": type(told).__name__.lower(), "record": asdict(told)}
    return {"event": "kernels", "origins": told}
