"""The examined side: runs checks on one plugin and writes down each step before the next.

Started by `cuda_morph_conformance.processes` as a process of its own. What it has not written when
it dies did not happen, so a plugin that takes the process down is caught by the line that is
absent.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import random
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cuda_morph_conformance.checks import load_all
from cuda_morph_conformance.facts import describe_subject
from cuda_morph_conformance.integrity import loaded_code
from cuda_morph_conformance.registry import CHECKS, CheckFailed, NotRun
from cuda_morph_conformance.subject import Subject
from cuda_morph_conformance.vocabulary import Level, Seen

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from typing import TextIO

    from cuda_morph_conformance.registry import Check

HUNG = "Timeout ("
"""How faulthandler begins the report of a check that did not end."""

SEED = 20260101


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What one worker is asked to do."""

    plugin: str
    view: str | None
    """``None`` for checks that are made once, whatever the view."""
    ids: tuple[str, ...]
    """None: only say who the plugin is."""
    limit: float
    """Seconds that one check may take."""
    journal: str
    """File that gets a line of JSON for each step."""

    def encode(self) -> str:
        """Returns the order as one command-line argument."""
        return json.dumps(asdict(self))

    @classmethod
    def decode(cls, text: str) -> Order:
        """Returns the order that `encode` wrote."""
        fields = json.loads(text)
        return cls(**{**fields, "ids": tuple(fields["ids"])})


def main(argument: str) -> None:
    """Run checks.

    Args:
        argument: An encoded `Order`.
    """
    order = Order.decode(argument)
    load_all()
    # Taken before any code of the plugin runs, as records of our own that it cannot reach.
    checks = [replace(CHECKS[check_id]) for check_id in order.ids]
    code = loaded_code()
    subject = Subject(order.plugin, view=order.view or "native", limit=order.limit)
    with Path(order.journal).open("a", encoding="utf-8", buffering=1) as journal:
        try:
            with _limited(order.limit):
                surroundings = _surroundings(checks, subject, journal)
        except BaseException as error:  # noqa: BLE001 - a plugin may raise anything
            _write(journal, event="unready", message=_describe(error))
            return
        with surroundings:
            for check in checks:
                _make(check, subject, order.limit, code, journal)


def _surroundings(
    checks: list[Check], subject: Subject, journal: TextIO
) -> AbstractContextManager[object]:
    """Activates the plugin where the checks expect that."""
    if not checks:
        _write(journal, event="subject", facts=describe_subject(subject))
    if not any(check.active for check in checks):
        return contextlib.nullcontext()
    subject.need_device()
    activation = subject.activate()
    _write(journal, event="active", facts={"tier": activation.tier, "devices": _device_names()})
    return activation


def _device_names() -> list[str]:
    import torch

    try:
        return [torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())]
    except Exception:  # noqa: BLE001 - the checks about names and counts will say more
        return []


def _make(
    check: Check, subject: Subject, limit: float, code: dict[str, int], journal: TextIO
) -> None:
    _write(journal, event="start", id=check.id)
    start = time.perf_counter()
    with _limited(limit):
        seen, message = _see(check, subject)
        changed = _changes(code)
        if check.active:
            _calm()
    if changed:
        seen, message = Seen.FAILED, f"the plugin changed the suite: {', '.join(changed[:5])}"
    seconds = round(time.perf_counter() - start, 4)
    _write(journal, event="done", id=check.id, seen=seen, message=message, seconds=seconds)


def _changes(code: dict[str, int]) -> list[str]:
    """Names the functions of the suite that are no longer what they were."""
    now = loaded_code()
    return sorted(name for name, identity in code.items() if now.get(name) != identity)


def _see(check: Check, subject: Subject) -> tuple[Seen, str]:
    random.seed(SEED)
    try:
        if check.devices > 1 and subject.device_count < check.devices:
            reason = f"it needs {check.devices} devices; here are {subject.device_count}"
            return Seen.SKIPPED, reason
        if check.active:
            import torch

            # Not torch.manual_seed: that goes through the plugin, whose failure is not this one's.
            torch.default_generator.manual_seed(SEED)
        check.run(subject)
    except CheckFailed as failure:
        return _absent(check, subject) or (Seen.FAILED, str(failure))
    except NotRun as reason:
        return Seen.SKIPPED, str(reason)
    except BaseException as error:  # noqa: BLE001 - a plugin may raise anything, SystemExit too
        return _absent(check, subject) or (Seen.FAILED, f"raised {_describe(error)}")
    return Seen.PASSED, ""


def _absent(check: Check, subject: Subject) -> tuple[Seen, str] | None:
    """Tells a check that needs the device from one that failed; asked late, as it may load much."""
    if check.level is Level.LOADS:
        return None
    with contextlib.suppress(CheckFailed):
        if subject.absence:
            return Seen.ABSENT, subject.absence
    return None


def _calm() -> None:
    """Undoes what a check that failed half-way may have left, so that the next starts alike."""
    import torch

    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    with contextlib.suppress(Exception):
        torch.cuda.set_device(0)


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    # Works even when the plugin holds the interpreter: the watchdog is a C thread.
    faulthandler.dump_traceback_later(seconds, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def _describe(error: BaseException) -> str:
    if isinstance(error, CheckFailed | NotRun):
        return str(error)
    return f"{type(error).__name__}: {error}"


def _write(journal: TextIO, **event: object) -> None:
    journal.write(json.dumps(event) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
