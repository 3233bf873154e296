"""Entry point of the command line: exit codes, and errors as messages.

Exit codes: 0 clean, 1 findings, 2 error. A program started by ``run`` keeps its own.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

ERROR = 2
_INTERRUPTED = 130
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), 127) if code not in {9, 10}}
"""Names of files, and words of a user, may hold orders to the terminal: they are shown instead."""


def main(arguments: Sequence[str] | None = None, path: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        arguments: Command-line arguments; ``None`` takes those of the process.
        path: ``sys.path`` as Python had made it, if it was changed since.

    Returns:
        The exit code.
    """
    before = set(sys.modules)
    path = [*sys.path] if path is None else path
    try:
        from cuda_morph.cli.group import cli
    except KeyboardInterrupt:
        return _INTERRUPTED
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.stderr.write(
            "cuda-morph: the command line needs click: "
            'install it with  pip install "cuda-morph-core[cli]"\n'
        )
        return ERROR
    result = _invoke(cli, arguments)
    if not callable(result):
        return int(result or 0)
    # A program is started here, below no frame of click, which would handle its exceptions.
    result(path, before)
    return 0


def _invoke(cli: Any, arguments: Sequence[str] | None) -> Any:
    """Returns a command's exit code, or the run that it prepared."""
    import click

    from cuda_morph.errors import MorphError

    try:
        return cli.main(
            None if arguments is None else list(arguments),
            prog_name="cuda-morph",
            standalone_mode=False,
        )
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except MorphError as error:
        sys.stderr.write(f"cuda-morph: {error}\n".translate(_CONTROLS))
        return ERROR
    except click.Abort:  # click has ended the line
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader has gone; without this the interpreter complains when it flushes at exit.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
