"""Paths that a command was given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuda_morph.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def require_existing(paths: Iterable[Path]) -> None:
    """Refuses paths that are not there, all of them at once.

    Args:
        paths: Files and folders.

    Raises:
        SettingError: One or more do not exist.
    """
    missing = [str(path) for path in paths if not path.exists()]
    if missing:
        raise SettingError(f"No such file or folder: {', '.join(missing)}.", hint="Check the path.")
