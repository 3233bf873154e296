"""Detection for plugins whose accelerator is served by an adapter module, and what can be wrong.

For authors of plugins: each obstacle is told apart from the others, because each needs another
step from the user. The reason is one sentence; ``details["problem"]`` holds the `Obstacle` and
``details["advice"]`` the step.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import sys
from enum import Enum
from importlib import metadata
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from cuda_morph.frozen_record import frozen_record
from cuda_morph.records import Backend, Detection
from cuda_morph.torch_build import torch_build
from cuda_morph.torch_facts import torch_version

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_morph.torch_build import TorchBuild

_LIBRARY = re.compile(r"\blib[\w.+-]+\.so[\w.]*")
_FREE_SLOT = "privateuseone"


class Obstacle(str, Enum):
    """Why an accelerator cannot be used."""

    TORCH_MISSING = "torch_missing"
    ADAPTER_MISSING = "adapter_missing"
    WRONG_TORCH = "wrong_torch"
    WRONG_BUILD = "wrong_build"
    SLOT_TAKEN = "slot_taken"
    SHIM_ACTIVE = "shim_active"
    LIBRARY_MISSING = "library_missing"
    IMPORT_FAILED = "import_failed"
    DRIVER_FAILED = "driver_failed"
    DRIVER_MISSING = "driver_missing"
    NO_DEVICE = "no_device"


PROBLEM = "problem"
"""Key of `Detection.details` that holds the obstacle."""
ABSENT = (Obstacle.TORCH_MISSING.value, Obstacle.ADAPTER_MISSING.value, Obstacle.WRONG_BUILD.value)
"""Obstacles of a machine that has nothing of the vendor: no reason to look further there."""


@frozen_record
class Advice:
    """What a user of this accelerator should do, by what is missing."""

    install: str
    """How the adapter, or the right build of PyTorch, is obtained."""
    libraries: str
    """How the vendor's libraries come onto the loader's path."""
    driver: str
    """How the driver is checked or installed."""
    shim: str = ""
    """How the vendor's own layer for CUDA programs is switched off."""


def detect_adapter(
    backend: Backend,
    advice: Advice,
    *,
    required_torch: Callable[[str], str | None],
    shims: tuple[str, ...] = (),
) -> Detection:
    """Answers ``cuda_morph_detect`` for a backend with an adapter module. Does not raise.

    Torch and the adapter are imported only when both are installed and fit each other.

    Args:
        backend: The plugin's own record; `adapter_module` must be set.
        advice: The steps to name.
        required_torch: From a version of the adapter, the version of PyTorch it is made for, such
            as ``"2.13"`` or ``">=2.7.1"``; ``None`` when the version does not say.
        shims: Modules that already make CUDA programs run on this accelerator; two such layers
            cannot share a process.

    Returns:
        The number of devices, or what stands in the way.
    """
    adapter = str(backend.adapter_module)
    found = {"torch": torch_version() or "", "adapter": distribution_version(adapter) or ""}
    refused = _refuse_before_import(backend, advice, found, required_torch)
    if refused is not None:
        return refused
    try:
        importlib.import_module(adapter)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - an adapter may raise anything
        return _import_failure(adapter, advice, found, error)
    active = next((name for name in shims if name in sys.modules), None)
    if active is not None:
        text = f"{active} is active in this process and does the same as cuda-morph."
        return refusal(Obstacle.SHIM_ACTIVE, text, advice.shim, found)
    return count_devices(backend, advice, found)


def detect_native(
    backend: Backend, advice: Advice, *, wrong_build: Callable[[TorchBuild], str]
) -> Detection:
    """Answers ``cuda_morph_detect`` for a backend that PyTorch has built in. Does not raise.

    PyTorch is imported only when its build is the right one.

    Args:
        backend: The plugin's own record.
        advice: The steps to name.
        wrong_build: What is wrong with a build of PyTorch, in one sentence; empty for a right one.

    Returns:
        The number of devices, or what stands in the way.
    """
    build = torch_build()
    if build is None:
        text = "PyTorch is not installed."
        return refusal(Obstacle.TORCH_MISSING, text, advice.install, {})
    found = {"torch": build.version}
    text = wrong_build(build)
    if text:
        return refusal(Obstacle.WRONG_BUILD, text, advice.install, found)
    try:
        importlib.import_module("torch")
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - its libraries may be missing
        return _import_failure("torch", advice, found, error)
    return count_devices(backend, advice, found)


def count_devices(backend: Backend, advice: Advice, found: dict[str, str]) -> Detection:
    """Asks the loaded device module for its devices. Does not raise.

    Args:
        backend: The plugin's own record.
        advice: The steps to name.
        found: Goes into `Detection.details`.

    Returns:
        The number of devices, or what stands in the way.
    """
    try:
        import torch

        module: Any = getattr(torch, backend.device_type)
        count = int(module.device_count())
    except Exception as error:  # noqa: BLE001 - a driver that fails to start is an answer
        text = f"{backend.display_name} cannot count its devices: {_one_line(error)}."
        return refusal(Obstacle.DRIVER_FAILED, text, advice.driver, found)
    if count > 0:
        return Detection(available=True, device_count=count, details=found)
    if backend.smi and shutil.which(backend.smi) is None:
        text = f"No device is found and {backend.smi} is not on PATH: the driver may be missing."
        return refusal(Obstacle.DRIVER_MISSING, text, advice.driver, found)
    variable = backend.visible_devices_env
    text, step = "The driver is there and no device is usable.", advice.driver
    if variable and variable in os.environ:
        text = f"No device is usable with {variable}={os.environ[variable]!r}."
        step = f"Change {variable}."
    return refusal(Obstacle.NO_DEVICE, text, step, found)


def refusal(problem: Obstacle, reason: str, advice: str, found: dict[str, str]) -> Detection:
    """Returns the detection of an accelerator that cannot be used.

    Args:
        problem: What stands in the way.
        reason: One sentence for a person.
        advice: What to do.
        found: Further details, e.g. versions; empty values are left out.

    Returns:
        The record.
    """
    details = {name: text for name, text in found.items() if text}
    details |= {PROBLEM: problem.value, "advice": advice}
    return Detection(available=False, reason=reason, details=details)


def distribution_version(module: str) -> str | None:
    """Returns the installed version of the distribution named like a module, if there is one."""
    try:
        return metadata.version(module)
    except metadata.PackageNotFoundError:
        return None


def version_fits(required: str, installed: str) -> bool:
    """Tells whether a version is the required one in all parts that the requirement names.

    Args:
        required: For example ``"2.13"``, or ``">=2.7.1"`` for that version and later ones.
        installed: For example ``"2.13.0+cpu"``.

    Returns:
        For ``2.13``: True for ``2.13.0+cpu``, False for ``2.1.3``.
    """
    parts = installed.partition("+")[0].split(".")
    if required.startswith(">="):
        return _numbers(parts) >= _numbers(required[2:].split("."))
    wanted = required.split(".")
    return parts[: len(wanted)] == wanted


def _numbers(parts: list[str]) -> list[int]:
    """Returns the leading numbers of a version's parts: ``2.9.0a0`` counts as 2.9.0."""
    found = (re.match(r"\d+", part) for part in parts)
    return [int(number[0]) for number in found if number]


def _refuse_before_import(
    backend: Backend,
    advice: Advice,
    found: dict[str, str],
    required_torch: Callable[[str], str | None],
) -> Detection | None:
    adapter = str(backend.adapter_module)
    if not _installed("torch"):
        text = "PyTorch is not installed."
        return refusal(Obstacle.TORCH_MISSING, text, advice.install, found)
    if not _installed(adapter):
        text = f"{adapter} is not installed."
        return refusal(Obstacle.ADAPTER_MISSING, text, advice.install, found)
    required = required_torch(found["adapter"]) if found["adapter"] else None
    if required and found["torch"] and not version_fits(required, found["torch"]):
        text = (
            f"{adapter} {found['adapter']} is made for PyTorch {required}, "
            f"and {found['torch']} is installed."
        )
        return refusal(Obstacle.WRONG_TORCH, text, advice.install, found)
    taken = _slot_owner()
    if taken not in (None, _FREE_SLOT, backend.device_type):
        text = f"Another adapter has this process's one place for a device: {taken!r}."
        return refusal(Obstacle.SLOT_TAKEN, text, "Start a process without it.", found)
    return None


def _installed(module: str) -> bool:
    if sys.modules.get(module) is not None:
        return True
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _slot_owner() -> str | None:
    """Returns who has PyTorch's place for out-of-tree devices, if PyTorch is loaded."""
    loaded: Any = sys.modules.get("torch")
    name = getattr(getattr(loaded, "_C", None), "_get_privateuse1_backend_name", None)
    return None if name is None else str(name())


def _import_failure(
    adapter: str, advice: Advice, found: dict[str, str], error: BaseException
) -> Detection:
    library = _LIBRARY.search(str(error))
    if library and isinstance(error, (ImportError, OSError)):
        text = f"{adapter} cannot be imported because of {library[0]}: {_one_line(error)}."
        return refusal(Obstacle.LIBRARY_MISSING, text, advice.libraries, found)
    text = f"{adapter} cannot be imported: {type(error).__name__}: {_one_line(error)}."
    step = f"Run python -c 'import {adapter}' for the full traceback."
    return refusal(Obstacle.IMPORT_FAILED, text, step, found)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300].rstrip(".")
