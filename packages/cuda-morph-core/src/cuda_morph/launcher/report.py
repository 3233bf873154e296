"""The report of a run, and the files that it and the trace are written to."""

from __future__ import annotations

import json
import platform
import sys
from typing import TYPE_CHECKING, Any

from cuda_morph import get_version
from cuda_morph.atomic_file import AtomicFile
from cuda_morph.errors import MorphError
from cuda_morph.torch_facts import torch_version

if TYPE_CHECKING:
    from cuda_morph.launcher.outcome import Outcome

SCHEMA = 1
"""Version of the report's fields; a new field does not raise it."""


def as_dict(outcome: Outcome) -> dict[str, Any]:
    """Returns the report in JSON-ready form."""
    activation = outcome.activation
    return {
        "schema": SCHEMA,
        "cuda_morph": get_version(),
        "python": platform.python_version(),
        "torch": torch_version(),
        "kind": outcome.program.kind,
        "argv": list(outcome.program.command),
        "exit_code": outcome.exit_code,
        "wall_seconds": round(outcome.seconds, 6),
        "simulated": None if activation is None else activation.backend.simulated,
        "children_inherit": outcome.children_inherit,
        "error": None if outcome.error is None else str(outcome.error),
        "activation": None if activation is None else activation.as_dict(),
        "usage": [
            {"name": name, "treatment": treatment, "calls": calls}
            for name, treatment, calls in (activation.usage() if activation else ())
        ],
    }


def as_text(outcome: Outcome) -> str:
    """Returns the report as it is written."""
    return json.dumps(as_dict(outcome), indent=2) + "\n"


class Target(AtomicFile):
    """A file that is written when the program ends. It is checked before the program runs."""

    def write(self, text: str, *, errors: str = "backslashreplace") -> None:
        """Writes the whole text or leaves the file as it was; a failure is one line."""
        try:
            super().write(text, errors=errors)
        except MorphError as error:
            sys.stderr.write(f"cuda-morph: {error}\n")
