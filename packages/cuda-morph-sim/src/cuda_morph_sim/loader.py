"""Loads the simulated device into PyTorch, once per process, under a chosen name."""

from __future__ import annotations

import atexit
import importlib.util
import threading
from importlib.machinery import ExtensionFileLoader
from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - whoever loads a device has PyTorch loaded

from cuda_morph.errors import AlreadyActiveError
from cuda_morph.import_watch import after_import
from cuda_morph_sim import build
from cuda_morph_sim.settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import ModuleType

_UNNAMED = "privateuseone"

_lock = threading.Lock()
_loaded: ModuleType | None = None
_native: Any = None
_loaded_name = ""
_loaded_owner = ""


def load(name: str = "sim") -> ModuleType:
    """Build the device if need be, load it and register it with PyTorch.

    Args:
        name: The device type as PyTorch prints it; the device module is ``torch.<name>``.

    Returns:
        The device module.

    Raises:
        AlreadyActiveError: PyTorch's slot for an out-of-tree device is taken in this process.
        MorphError: The device cannot be built (``CM-E12``) or an environment variable is not
            understood (``CM-E06``).
    """

    def make_module(native: Any) -> ModuleType:
        from cuda_morph_sim import collectives, device_module

        collectives.register(name)
        return device_module.make_module(name, native)

    return load_as(name, make_module)


def load_as(
    name: str,
    make_module: Callable[[Any], ModuleType],
    *,
    owner: str = "",
    visible: str | None = None,
) -> ModuleType:
    """Load the device with a device module that the caller makes.

    Args:
        name: The device type as PyTorch prints it.
        make_module: Makes the device module from the native half of the device, once PyTorch knows
            the device's name.
        owner: For whom it is loaded; another owner cannot have it in this process.
        visible: The variable that lists the visible devices, see `read_settings`.

    Returns:
        The device module.

    Raises:
        AlreadyActiveError: PyTorch's slot for an out-of-tree device is taken in this process.
        MorphError: The device cannot be built, or an environment variable is not understood.
    """
    global _loaded, _loaded_name, _loaded_owner, _native
    with _lock:
        if _loaded is not None:
            if (name, owner) != (_loaded_name, _loaded_owner):
                raise _taken(name, f"the simulated device is loaded as {_loaded_name!r}")
            return _loaded
        present = torch._C._get_privateuse1_backend_name()
        if present != _UNNAMED:
            raise _taken(name, f"{present!r} holds it")
        settings = read_settings(visible)
        native = _import_native(build.ensure_built())
        native.register_backend(settings.devices, settings.memory, settings.guarded)
        torch.utils.rename_privateuse1_backend(name)
        _native = native
        module = make_module(native)
        torch._register_device_module(name, module)
        torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
        native.start_autograd_threads()
        atexit.register(native.settle_autograd_threads)
        after_import("torch._inductor.compile_fx", _connect_inductor)
        _loaded, _loaded_name, _loaded_owner = module, name, owner
        return module


def obstacle(name: str, owner: str = "") -> str:
    """Tell why the device cannot be loaded in this process.

    Args:
        name: The device type it is to have.
        owner: For whom.

    Returns:
        The reason, empty when there is none.
    """
    if _loaded is not None:
        same = (name, owner) == (_loaded_name, _loaded_owner)
        return "" if same else f"the simulated device is loaded as {_loaded_name!r}"
    present = torch._C._get_privateuse1_backend_name()
    return "" if present == _UNNAMED else f"{present!r} holds PyTorch's place for such devices"


def loaded_module() -> ModuleType | None:
    """The device module if the device is loaded in this process.

    Returns:
        The module, or ``None``.
    """
    return _loaded


def _connect_inductor() -> None:
    from cuda_morph_sim import inductor

    inductor.connect()


def native_module() -> Any:
    """The native half of the device: counters and the functions the device module is made of.

    Returns:
        The extension module, or ``None`` when the device is not loaded.
    """
    return _native


def _taken(name: str, why: str) -> AlreadyActiveError:
    return AlreadyActiveError(
        f"The simulated device cannot be loaded as {name!r}: PyTorch has one place for an "
        f"out-of-tree device per process, and {why}.",
        hint="Start a new process for the simulated device.",
    )


def _import_native(path: Path) -> Any:
    loader = ExtensionFileLoader("cuda_morph_sim._native", str(path))
    spec = importlib.util.spec_from_file_location(loader.name, path, loader=loader)
    if spec is None:
        raise ImportError(f"cannot import {path}")
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module
