"""The simulated device's environment variables, read and checked in one place."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from cuda_morph.errors import SettingError

DEVICES_VARIABLE = "CUDA_MORPH_SIM_DEVICES"
"""How many simulated devices there are."""

VISIBLE_VARIABLE = "CUDA_MORPH_SIM_VISIBLE_DEVICES"
"""Which of them this process sees, as ``CUDA_VISIBLE_DEVICES`` says it: ``0,1``."""

MEMORY_VARIABLE = "CUDA_MORPH_SIM_MEMORY"
"""Memory of each device: bytes, or a number with a unit such as ``16GiB``."""

DEBUG_VARIABLE = "CUDA_MORPH_SIM_DEBUG"
"""``1``: reading device memory from the host through its address stops the process."""

CACHE_VARIABLE = "CUDA_MORPH_SIM_CACHE"
"""Folder for the built device; replaces the user's cache folder."""

IMPORTS_VARIABLE = "CUDA_MORPH_SIM_IMPORTS"
"""``1``: while an adapter is simulated, ``import`` of its name gives the simulation."""

MAX_DEVICES = 64
DEFAULT_DEVICES = 2
DEFAULT_MEMORY = 16 << 30

_UNITS = {"": 0, "b": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the simulated device is set up in this process."""

    devices: int
    memory: int
    """Bytes per device."""
    guarded: bool
    """Device memory cannot be read by the host through a tensor's address."""


def read_settings(visible: str | None = None) -> Settings:
    """Read the environment.

    Args:
        visible: The variable by which a simulated adapter's users list devices. Where it is unset,
            `VISIBLE_VARIABLE` counts.

    Returns:
        The settings, with defaults for what is not set.

    Raises:
        SettingError: A variable has a value that is not understood.
    """
    return Settings(
        devices=_visible(
            visible if visible and visible in os.environ else VISIBLE_VARIABLE,
            _devices(os.environ.get(DEVICES_VARIABLE, "")),
        ),
        memory=_memory(os.environ.get(MEMORY_VARIABLE, "")),
        guarded=read_flag(DEBUG_VARIABLE, os.environ.get(DEBUG_VARIABLE, "")),
    )


def _devices(text: str) -> int:
    if not text.strip():
        return DEFAULT_DEVICES
    count = int(text) if text.strip().isdecimal() else 0
    if not 1 <= count <= MAX_DEVICES:
        raise SettingError(
            f"{DEVICES_VARIABLE}={text!r} is no number of devices.",
            hint=f"Use a whole number from 1 to {MAX_DEVICES}.",
        )
    return count


def _visible(variable: str, count: int) -> int:
    """Number of devices listed before the first that is not there, as CUDA counts them."""
    text = os.environ.get(variable)
    if text is None:
        return count
    seen: list[int] = []
    for item in text.split(","):
        index = int(item) if item.strip().isdecimal() else -1
        if not 0 <= index < count or index in seen:
            break
        seen.append(index)
    if not seen:
        raise SettingError(
            f"{variable}={text!r} leaves no simulated device visible.",
            hint=f"List devices from 0 to {count - 1}, or use the cpu backend.",
        )
    return len(seen)


def _memory(text: str) -> int:
    if not text.strip():
        return min(DEFAULT_MEMORY, _host_memory())
    match = _SIZE.fullmatch(text)
    size = int(float(match[1]) * (1 << _UNITS[match[2].lower()])) if match else 0
    if not 0 < size < 1 << 62:
        raise SettingError(
            f"{MEMORY_VARIABLE}={text!r} is no amount of memory.",
            hint="Use bytes or a unit, for example 17179869184, 512MiB or 16GiB.",
        )
    return size


def read_flag(variable: str, text: str) -> bool:
    """Read a yes or no.

    Args:
        variable: Name of the variable, for the message.
        text: Its value; empty means no.

    Returns:
        What it says.

    Raises:
        SettingError: It says neither.
    """
    value = text.strip().lower()
    if value in {"", "0", "false", "no", "off"}:
        return False
    if value in {"1", "true", "yes", "on"}:
        return True
    raise SettingError(f"{variable}={text!r} is neither yes nor no.", hint="Use 1 or 0.")


def _host_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return DEFAULT_MEMORY


def cache_folder() -> Path:
    """Folder that holds the built device.

    Returns:
        The folder of ``CUDA_MORPH_SIM_CACHE``, else one in the user's cache folder.
    """
    chosen = os.environ.get(CACHE_VARIABLE, "").strip()
    if chosen:
        return Path(chosen).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("cuda-morph", appauthor=False)) / "sim"
