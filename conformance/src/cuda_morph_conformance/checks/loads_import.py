"""Level ``loads``: importing the plugin is cheap, quiet and without consequence."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from cuda_morph_conformance.registry import check, require
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from cuda_morph_conformance.subject import Subject

_HEAVY = ("torch", "numpy", "transformers")
_SECONDS = 1.0


@check("CM-LOAD-010", level=Level.LOADS, since="0.1", fresh=True)
def imports_no_torch(subject: Subject) -> None:
    """Importing the plugin and asking for its backend MUST NOT import torch or the adapter.

    Fix: move the import into the hook that needs it, such as ``DeviceMapping.init``.
    """
    before = set(sys.modules)
    backend = subject.backend()
    adapter = backend.adapter_module
    unwanted = sorted(
        name
        for name in set(sys.modules) - before
        if name in _HEAVY or (adapter and (name == adapter or name.startswith(f"{adapter}.")))
    )
    require(not unwanted, f"imported: {', '.join(unwanted)}")


@check("CM-LOAD-011", level=Level.LOADS, since="0.1", fresh=True)
def imports_quickly(subject: Subject) -> None:
    """Importing the plugin MUST take less than a second and print nothing.

    Fix: keep tables in data files that are read on demand; log through ``logging``.
    """
    out, err = io.StringIO(), io.StringIO()
    start = time.perf_counter()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        subject.plugin  # noqa: B018 - loading it is the point
    seconds = time.perf_counter() - start
    require(seconds < _SECONDS, f"it took {seconds:.2f} s")
    printed = (out.getvalue() + err.getvalue()).strip()
    require(not printed, f"it printed {printed[:200]!r}")


@check("CM-LOAD-012", level=Level.LOADS, since="0.1", fresh=True)
def changes_nothing(subject: Subject) -> None:
    """Import and detection MUST leave environment, import path, folder and signals as they were.

    Fix: set variables in ``DeviceMapping.init`` at the earliest, and only those of the vendor.
    """
    before = _surroundings()
    subject.backend()
    subject.detection()
    changed = [name for name, value in _surroundings().items() if value != before[name]]
    require(not changed, f"changed: {', '.join(changed)}")


def _surroundings() -> dict[str, object]:
    handled = (signal.SIGINT, signal.SIGTERM)
    return {
        "os.environ": dict(os.environ),
        "sys.path": list(sys.path),
        "sys.meta_path": list(sys.meta_path),
        "working folder": Path.cwd(),
        "signal handlers": [signal.getsignal(number) for number in handled],
        "sys.excepthook": sys.excepthook,
    }
