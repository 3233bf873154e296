"""The report and the trace of a run, and the files they are written to."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuda_morph import get_version
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


class Target:
    """A file that is written when the program ends. It is checked before the program runs.

    Args:
        path: Where the text goes; a pipe or device is written to directly.
        what: What the text is, for messages.

    Raises:
        MorphError: It could not be written there.
    """

    def __init__(self, path: Path, what: str = "report") -> None:
        self._what = what
        self.path = Path(os.path.abspath(path))  # noqa: PTH100 - the program may change directory
        self._direct = self.path.exists() and not self.path.is_file()
        try:
            if self.path.is_dir():
                raise IsADirectoryError(None, "Is a directory")
            if self.path.exists() and not os.access(self.path, os.W_OK):
                raise PermissionError(None, "Permission denied")
            if not self._direct:
                self._temporary().unlink()
        except OSError as error:
            raise self._unwritable(error) from error

    def write(self, text: str) -> None:
        """Writes the whole text or leaves the file as it was; a failure is one line."""
        temporary = None
        try:
            if self._direct:
                self.path.write_text(text, encoding="utf-8", errors="backslashreplace")
                return
            temporary = self._temporary()
            temporary.write_text(text, encoding="utf-8", errors="backslashreplace")
            temporary.chmod(0o666 & ~_umask())
            temporary.replace(self.path)
        except OSError as error:
            if temporary is not None:
                with contextlib.suppress(OSError):
                    temporary.unlink()
            sys.stderr.write(f"cuda-morph: {self._unwritable(error)}\n")

    def _temporary(self) -> Path:
        descriptor, name = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=self.path.parent)
        os.close(descriptor)
        return Path(name)

    def _unwritable(self, error: OSError) -> MorphError:
        return MorphError(
            f"the {self._what} cannot be written to {str(self.path)!r}: {error.strerror or error}.",
            hint="Name a file in a directory that exists and that you may write to.",
            code="CM-E15",
        )


def _umask() -> int:
    """Returns the mask that an ordinarily created file would have had."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
