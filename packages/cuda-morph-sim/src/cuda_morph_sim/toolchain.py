"""What a build needs from the machine: PyTorch's headers, Python's headers and a compiler."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

COMPILERS = ("g++", "c++", "clang++")
"""Tried in this order unless ``CXX`` names one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchInstallation:
    """A PyTorch that is installed; it need not have been imported."""

    folder: Path
    version: str


def find_torch() -> TorchInstallation | None:
    """Find PyTorch without importing it.

    Returns:
        The installation, or ``None`` when there is none.
    """
    loaded = sys.modules.get("torch")
    if loaded is not None and getattr(loaded, "__file__", None):
        return TorchInstallation(
            folder=Path(str(loaded.__file__)).parent, version=str(loaded.__version__)
        )
    try:
        spec = importlib.util.find_spec("torch")
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    try:
        # Read rather than imported: detection must stay in the range of a millisecond.
        text = (folder / "version.py").read_text(encoding="utf-8")
    except OSError:
        return None
    match = re.search(r"^__version__\s*=\s*['\"]([^'\"]+)", text, re.MULTILINE)
    return TorchInstallation(folder=folder, version=match[1]) if match else None


def find_compiler() -> list[str] | None:
    """Find a C++ compiler.

    Returns:
        The command to start it, from ``CXX`` or the first one on the path, else ``None``.
    """
    chosen = shlex.split(os.environ.get("CXX", ""))
    if chosen:
        return chosen if shutil.which(chosen[0]) else None
    return next(([name] for name in COMPILERS if shutil.which(name)), None)


def find_python_headers() -> Path | None:
    """Find the folder that holds ``Python.h``.

    Returns:
        The folder, or ``None`` when the interpreter came without its headers.
    """
    folder = Path(sysconfig.get_path("include"))
    return folder if (folder / "Python.h").is_file() else None


def python_abi() -> str:
    """Name of the interpreter's binary interface.

    Returns:
        The suffix of extension modules without dots, e.g. ``cpython-311-x86_64-linux-gnu``.
    """
    suffix = str(sysconfig.get_config_var("EXT_SUFFIX") or sys.implementation.cache_tag)
    return suffix.strip(".").removesuffix(".so")
