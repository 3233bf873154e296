"""Health checks that most plugins need, to be filled with the vendor's names.

For authors of plugins. Nothing is looked at before ``run`` is called. Libraries are opened in a
child process, so one that aborts while it loads does not take the caller along.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cuda_morph.adapter_detection import distribution_version, version_fits
from cuda_morph.records import CheckResult, HealthCheck
from cuda_morph.torch_build import torch_build
from cuda_morph.torch_facts import torch_version

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cuda_morph.torch_build import TorchBuild

_OPEN = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
_SECONDS = 20.0


def tool_on_path(id: str, tool: str, *, fix: str) -> HealthCheck:  # noqa: A002 - the record's word
    """Checks that the vendor's command-line tool is there.

    Args:
        id: Of the check, e.g. ``mychip.tool``.
        tool: Name of the program.
        fix: What to do without it.

    Returns:
        The check.
    """

    def run() -> CheckResult:
        path = shutil.which(tool)
        return CheckResult(ok=path is not None, message=f"{tool}: {path or 'not on PATH'}")

    return HealthCheck(id=id, summary=f"{tool} is on PATH", run=run, fix=fix)


def folder_named(id: str, variable: str, *, fix: str) -> HealthCheck:  # noqa: A002
    """Checks that a variable names a folder that exists.

    Args:
        id: Of the check.
        variable: Environment variable of the vendor's SDK.
        fix: What to do without it.

    Returns:
        The check; undecided when the variable is not set.
    """

    def run() -> CheckResult:
        value = os.environ.get(variable)
        if not value:
            return CheckResult(ok=None, message=f"{variable} is not set")
        there = Path(value).is_dir()
        text = "is a folder" if there else "is no folder"
        return CheckResult(ok=there, message=f"{variable}={value} {text}")

    return HealthCheck(id=id, summary=f"{variable} names a folder", run=run, fix=fix)


def library_opens(id: str, library: str, *, fix: str) -> HealthCheck:  # noqa: A002
    """Checks that the loader finds a shared library with all that it needs.

    Args:
        id: Of the check.
        library: Its file name, e.g. ``libmychip.so``.
        fix: What to do without it.

    Returns:
        The check.
    """

    def run() -> CheckResult:
        command = [sys.executable, "-c", _OPEN, library]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return CheckResult(ok=None, message=f"{library} could not be tried: {error}")
        if done.returncode == 0:
            return CheckResult(ok=True, message=f"{library} opens")
        last = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        return CheckResult(ok=False, message=f"{library} does not open: {last[0]}")

    return HealthCheck(id=id, summary=f"{library} can be opened", run=run, fix=fix)


def versions_fit(
    id: str,  # noqa: A002
    adapter: str,
    required_torch: Callable[[str], str | None],
    *,
    fix: str,
) -> HealthCheck:
    """Checks that the adapter is made for the PyTorch that is installed.

    Args:
        id: Of the check.
        adapter: Module and distribution name of the adapter.
        required_torch: As for :func:`cuda_morph.adapter_detection.detect_adapter`.
        fix: What to do otherwise.

    Returns:
        The check; undecided when a version is not known.
    """

    def run() -> CheckResult:
        own, torch = distribution_version(adapter), torch_version()
        required = required_torch(own) if own else None
        details = {"adapter": own or "not installed", "torch": torch or "not installed"}
        if required is None or torch is None:
            text = f"{adapter} {details['adapter']}, PyTorch {details['torch']}"
            return CheckResult(ok=None, message=text, details=details)
        fits = version_fits(required, torch)
        text = f"{adapter} {own} is made for PyTorch {required}; {torch} is installed"
        return CheckResult(ok=fits, message=text, details=details)

    return HealthCheck(id=id, summary=f"{adapter} and PyTorch go together", run=run, fix=fix)


def build_fits(
    id: str,  # noqa: A002
    wrong_build: Callable[[TorchBuild], str],
    *,
    fix: str,
) -> HealthCheck:
    """Checks that PyTorch is built for the accelerator.

    Args:
        id: Of the check.
        wrong_build: As for :func:`cuda_morph.adapter_detection.detect_native`.
        fix: What to do otherwise.

    Returns:
        The check; undecided without PyTorch.
    """

    def run() -> CheckResult:
        build = torch_build()
        if build is None:
            return CheckResult(ok=None, message="PyTorch is not installed")
        problem = wrong_build(build)
        return CheckResult(ok=not problem, message=problem or f"PyTorch {build.version}")

    return HealthCheck(id=id, summary="PyTorch is built for the accelerator", run=run, fix=fix)


def variables_agree(
    id: str,  # noqa: A002
    groups: tuple[tuple[str, ...], ...],
    *,
    fix: str,
    even_if_equal: bool = False,
) -> HealthCheck:
    """Checks that of variables for the same thing one is set, or all to the same.

    Args:
        id: Of the check.
        groups: Names of variables that the runtime does not take together.
        even_if_equal: The runtime refuses two of them even with the same value.
        fix: What to do otherwise.

    Returns:
        The check.
    """

    def run() -> CheckResult:
        for group in groups:
            found = {name: os.environ[name] for name in group if name in os.environ}
            if len(found if even_if_equal else set(found.values())) > 1:
                text = ", ".join(f"{name}={value!r}" for name, value in found.items())
                return CheckResult(ok=False, message=f"set at once: {text}", details=found)
        return CheckResult(ok=True, message="no conflict")

    return HealthCheck(id=id, summary="Variables do not contradict", run=run, fix=fix)


def visible_devices(
    id: str,  # noqa: A002
    readers: Mapping[str, Callable[[str], str]],
    *,
    fix: str,
) -> HealthCheck:
    """Checks that variables of visible devices say what their runtime understands.

    Args:
        id: Of the check.
        readers: By variable, a reader such as those of :mod:`cuda_morph.visible_lists`.
        fix: What to do otherwise.

    Returns:
        The check.
    """

    def run() -> CheckResult:
        said = []
        for variable, read in readers.items():
            value = os.environ.get(variable)
            if value is None:
                continue
            problem = read(value)
            if problem:
                return CheckResult(ok=False, message=f"{variable}={value!r}: {problem}")
            said.append(f"{variable}={value!r}")
        return CheckResult(ok=True, message=", ".join(said) or "every device is visible")

    return HealthCheck(id=id, summary="Visible devices can be read", run=run, fix=fix)


def shims_off(
    id: str,  # noqa: A002
    modules: tuple[str, ...],
    *,
    variables: tuple[str, ...] = (),
    fix: str,
) -> HealthCheck:
    """Checks that no other layer for CUDA programs starts together with Python.

    Args:
        id: Of the check.
        modules: Modules of such layers; one that is loaded already is active.
        variables: Variables that switch one on with ``1``.
        fix: What to do otherwise.

    Returns:
        The check. It sees what starts by itself, not what a program imports later.
    """

    def run() -> CheckResult:
        active = [name for name in modules if name in sys.modules]
        active += [f"{name}=1" for name in variables if os.environ.get(name) == "1"]
        text = f"active: {', '.join(active)}" if active else "none starts with Python"
        return CheckResult(ok=not active, message=text)

    return HealthCheck(id=id, summary="No other layer for CUDA programs", run=run, fix=fix)
