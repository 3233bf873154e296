"""Findings on what happens before a program's first line, and at its ``import torch``."""

from __future__ import annotations

import importlib.util
import json
import site
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cuda_morph.diagnosis import contained
from cuda_morph.diagnosis.entry_points import in_group
from cuda_morph.diagnosis.finding import Finding, Level
from cuda_morph.diagnosis.worker import AUTOLOAD_GROUP

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from importlib.metadata import EntryPoint

_LIST = "import sys, json; print('\\n' + json.dumps(sorted(sys.modules)))"
_CUSTOM = ("sitecustomize", "usercustomize")


def look_at_early_imports(adapters: Iterable[str]) -> Iterator[Finding]:
    """Looks at what a fresh interpreter imports by itself.

    Args:
        adapters: Modules of accelerators that should not be among it.

    Yields:
        One finding for each module that is, or one that says that none is.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-c", _LIST],
            capture_output=True,
            text=True,
            timeout=contained.SECONDS,
            check=False,
        )
        modules = set(json.loads(done.stdout.splitlines()[-1]))
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError) as error:
        text = f"a fresh interpreter did not answer: {error}"
        yield Finding(id="startup.imports", level=Level.FAIL, message=text, fix="Reinstall Python.")
        return
    early = sorted({"torch", *adapters} & modules)
    for name in early:
        text = f"{name} is imported whenever Python starts, before cuda-morph can prepare"
        fix = f"Remove the import from {', '.join(_suspects(name, modules)) or 'its .pth file'}."
        yield Finding(id=f"startup.{name}", level=Level.WARN, message=text, fix=fix)
    if not early:
        text = "Python starts without PyTorch or an adapter"
        yield Finding(id="startup.imports", level=Level.OK, message=text)


def _suspects(name: str, modules: set[str]) -> Iterator[str]:
    """Yields files that run when Python starts and name the module."""
    folders = [*site.getsitepackages(), site.getusersitepackages()]
    for folder in map(Path, folders):
        for file in sorted(folder.glob("*.pth")):
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
            if any(line.startswith("import") and name in line for line in lines):
                yield str(file)
    for custom in _CUSTOM:
        spec = importlib.util.find_spec(custom) if custom in modules else None
        if spec is not None and spec.origin:
            yield spec.origin


def look_at_autoload(*, full: bool, seconds: float) -> Iterator[Finding]:
    """Looks at what PyTorch loads at the end of its import: one that fails takes PyTorch along.

    Args:
        full: Loads each in a child process; else only looks for its module.
        seconds: Time for each.

    Yields:
        One finding for each entry point.
    """
    entries = in_group(AUTOLOAD_GROUP)
    if full and importlib.util.find_spec("torch") is not None:
        names = dict.fromkeys(entry.name for entry in entries)
        for outcome in contained.run("autoload", names, seconds=seconds):
            same = [entry for entry in entries if entry.name == outcome.subject]
            yield _loaded(outcome, same)
        return
    for entry in sorted(entries, key=lambda one: one.name):
        id_ = f"autoload.{entry.name}"
        if _is_there(entry.module):
            text = f"{entry.value} is registered"
            more = "" if full else "; doctor --full loads it"
            yield Finding(id=id_, level=Level.OK, message=text + more)
        else:
            text = f"{entry.value} is registered and its module is not there: import torch fails"
            yield Finding(id=id_, level=Level.FAIL, message=text, fix=_way_out([entry]))


def _loaded(outcome: contained.Outcome, entries: list[EntryPoint]) -> Finding:
    """Judges all entry points of one name: PyTorch loads each."""
    if not outcome.error:
        return Finding(id=outcome.id, level=Level.OK, message="loads")
    what = " or ".join(f"{entry.value} of {_owner(entry)}" for entry in entries)
    text = f"{what} makes import torch fail: {outcome.error}"
    return Finding(id=outcome.id, level=Level.FAIL, message=text, fix=_way_out(entries))


def _owner(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else "a distribution without a name"


def _way_out(entries: list[EntryPoint]) -> str:
    owners = " or ".join(_owner(entry) for entry in entries)
    return f"Repair or uninstall {owners}; TORCH_DEVICE_BACKEND_AUTOLOAD=0 skips it for now."


def _is_there(module: str) -> bool:
    """Looks for a module without importing more than nothing: only its first part is searched."""
    try:
        return importlib.util.find_spec(module.partition(".")[0]) is not None
    except (ImportError, ValueError):
        return False
