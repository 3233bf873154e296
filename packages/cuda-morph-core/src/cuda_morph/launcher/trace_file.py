"""The file that receives the trace of a run."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from cuda_morph.errors import SettingError
from cuda_morph.launcher.report import Target

if TYPE_CHECKING:
    from pathlib import Path

    from cuda_morph.launcher.outcome import Outcome

_FORMATS = {".html": "html", ".htm": "html", ".json": "json"}


class TraceFile:
    """The file named by ``--trace``. It is checked before the program runs.

    Args:
        path: Where the trace goes; its ending says in which form.

    Raises:
        MorphError: The ending is unknown, or the file could not be written.
    """

    def __init__(self, path: Path) -> None:
        ending = path.suffix.lower()
        if ending not in _FORMATS:
            raise SettingError(
                f"--trace {str(path)!r}: the ending says in which form the trace is written, and "
                f"{ending or 'an empty one'!r} is none of {', '.join(_FORMATS)}.",
                hint="Name a file such as trace.html, for reading, or trace.json, for programs.",
            )
        self._form = _FORMATS[ending]
        self._target = Target(path, "trace")

    def write(self, outcome: Outcome) -> None:
        """Writes the trace, or says in one line why there is none."""
        self._target.write(_json(outcome) if self._form == "json" else _html(outcome))


def _json(outcome: Outcome) -> str:
    import json

    program = {
        "argv": list(outcome.program.command),
        "exit_code": outcome.exit_code,
        "wall_seconds": round(outcome.seconds, 6),
    }
    if outcome.trace is None:
        from cuda_morph.trace.report import VERSION

        empty = {"version": VERSION, "kind": "cuda-morph trace", "cuda_calls": [], "operators": []}
        text = {**empty, "notes": [_nothing(outcome)], "program": program}
        return json.dumps(text, indent=2) + "\n"
    return outcome.trace.as_json(program=program)


def _html(outcome: Outcome) -> str:
    title = shlex.join(outcome.program.command)
    if outcome.program.kind == "code":
        title = "-c ..."
    facts = (
        ("exit code", str(outcome.exit_code)),
        ("wall time", f"{outcome.seconds:.2f} s, with the trace's own cost"),
    )
    if outcome.trace is None:
        from html import escape

        head = f"<!DOCTYPE html><meta charset=utf-8><title>{escape(title)}</title>"
        return f"{head}<p>{escape(_nothing(outcome))}</p>\n"
    return outcome.trace.as_html(title, facts)


def _nothing(outcome: Outcome) -> str:
    if outcome.error is not None:
        return f"Nothing was recorded: the activation failed. {outcome.error}"
    if outcome.activation is None:
        return "Nothing was recorded: torch was never imported."
    return f"Nothing was recorded: nothing is redirected ({outcome.activation.tier})."
