"""The examined side: runs checks on one plugin and writes down each step before the next.

Started by `cuda_morph_conformance.runner` as a process of its own. What it has not written when it
dies did not happen, so a plugin that takes the process down is caught by the line that is absent.
"""

from __future__ import annotations

import faulthandler
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from cuda_morph_conformance.checks import load_all
from cuda_morph_conformance.registry import CHECKS, CheckFailed, NotRun
from cuda_morph_conformance.subject import Subject
from cuda_morph_conformance.vocabulary import Outcome

if TYPE_CHECKING:
    from cuda_morph_conformance.registry import Check

HUNG = "Timeout ("
"""How faulthandler begins the report of a check that did not end."""


def main(arguments: list[str]) -> None:
    """Run checks.

    Args:
        arguments: Plugin name, path of the journal, seconds allowed per check, and check ids.
    """
    name, journal_path, limit, *ids = arguments
    load_all()
    subject = Subject(name)
    with Path(journal_path).open("a", encoding="utf-8", buffering=1) as journal:
        for check_id in ids:
            journal.write(json.dumps({"event": "start", "id": check_id}) + "\n")
            # Works even when the plugin holds the interpreter: the watchdog is a C thread.
            faulthandler.dump_traceback_later(float(limit), exit=True)
            start = time.perf_counter()
            outcome, message = _judge(CHECKS[check_id], subject)
            seconds = round(time.perf_counter() - start, 4)
            faulthandler.cancel_dump_traceback_later()
            done = {"event": "done", "id": check_id, "outcome": outcome.value}
            journal.write(json.dumps({**done, "message": message, "seconds": seconds}) + "\n")


def _judge(check: Check, subject: Subject) -> tuple[Outcome, str]:
    try:
        check.run(subject)
    except CheckFailed as failure:
        return Outcome.FAILED, str(failure)
    except NotRun as reason:
        return Outcome.MISSING, str(reason)
    except BaseException as error:  # noqa: BLE001 - a plugin may raise anything, SystemExit too
        return Outcome.FAILED, f"raised {error!r}"
    return Outcome.PASSED, ""


if __name__ == "__main__":
    main(sys.argv[1:])
