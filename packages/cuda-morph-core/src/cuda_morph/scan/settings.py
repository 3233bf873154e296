"""Settings of ``cuda-morph check`` in a project's ``pyproject.toml``.

.. code-block:: toml

    [tool.cuda-morph.check]
    target = "ascend"
    ignore = ["CM105"]
    exclude = ["third_party/*"]
    baseline = "cuda-baseline.json"
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from cuda_morph.errors import SettingError
from cuda_morph.frozen_record import frozen_record

if TYPE_CHECKING:
    from pathlib import Path


@frozen_record
class CheckSettings:
    """What the project's file says; the command line goes first."""

    file: Path | None = None
    target: str | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    baseline: str | None = None
    max_size: int | None = None


_LISTS = {"select", "ignore", "exclude"}
_TEXTS = {"target", "baseline"}


def read_settings(start: Path) -> CheckSettings:
    """Reads the nearest ``pyproject.toml`` that has a section for the check.

    Args:
        start: A file or folder; its parents are searched upwards.

    Returns:
        The settings; defaults when no file has the section.

    Raises:
        SettingError: A file is no TOML, or a value has the wrong type.
    """
    folder = start.resolve() if start.is_dir() else start.resolve().parent
    for parent in (folder, *folder.parents):
        file = parent / "pyproject.toml"
        if file.is_file():
            section = _section(file)
            if section is not None:
                return _settings(file, section)
    return CheckSettings()


def _section(file: Path) -> dict[str, Any] | None:
    # tomllib came with Python 3.11; tomli is the same parser for older ones.
    tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingError(
            f"{file} cannot be read: {error}.", hint="Repair it, or use --isolated."
        ) from error
    section = data.get("tool", {}).get("cuda-morph", {})
    found = section.get("check") if isinstance(section, dict) else None
    return found if isinstance(found, dict) else None


def _settings(file: Path, section: dict[str, Any]) -> CheckSettings:
    values: dict[str, Any] = {}
    for key, value in section.items():
        name = key.replace("-", "_")
        if name in _LISTS:
            _require(file, key, value, isinstance(value, list), "a list of texts")
            _require(file, key, value, all(isinstance(v, str) for v in value), "a list of texts")
            values[name] = tuple(value)
        elif name in _TEXTS:
            _require(file, key, value, isinstance(value, str), "a text")
            values[name] = value
        elif name == "max_size":
            _require(file, key, value, type(value) is int and value > 0, "a number of bytes")
            values[name] = value
        else:
            known = ", ".join(sorted(k.replace("_", "-") for k in (*_LISTS, *_TEXTS, "max_size")))
            raise SettingError(
                f"[tool.cuda-morph.check] in {file} has no setting {key!r}.",
                hint=f"Known: {known}.",
            )
    return CheckSettings(file=file, **values)


def _require(file: Path, key: str, value: object, condition: object, wanted: str) -> None:
    if not condition:
        raise SettingError(
            f"{key} = {value!r} in {file} is not {wanted}.", hint="Correct [tool.cuda-morph.check]."
        )
