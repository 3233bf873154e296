"""JSON files that a user names: one object, of a size that a person could have written."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING, Any

from cuda_morph.errors import MorphError, SettingError

if TYPE_CHECKING:
    import os
    from pathlib import Path

LARGEST = 64 * 1024 * 1024


def read_object(path: Path, *, hint: str, largest: int = LARGEST) -> dict[str, Any]:
    """Reads a JSON object.

    Args:
        path: The file. A pipe or a device is refused: it would be read without end.
        hint: What the user should give instead.
        largest: Bytes that it may have.

    Returns:
        What it holds.

    Raises:
        MorphError: It cannot be read.
        SettingError: It is no file, too large, or holds something else.
    """
    try:
        _require_readable(path.stat(), path, hint, largest)
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror or error}."
        raise MorphError(message, hint=f"Check the path. {hint}", code="CM-E15") from None
    except UnicodeDecodeError:
        raise SettingError(f"{path} is no text in UTF-8.", hint=hint) from None
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SettingError(f"{path} is no valid JSON: {error}.", hint=hint) from None
    if not isinstance(content, dict):
        message = f"{path} holds {type(content).__name__} instead of an object {{...}}."
        raise SettingError(message, hint=hint)
    return content


def _require_readable(status: os.stat_result, path: Path, hint: str, largest: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        what = "a folder" if stat.S_ISDIR(status.st_mode) else "no file"
        raise SettingError(f"{path} is {what}.", hint=hint)
    if status.st_size > largest:
        text = f"{path} has {status.st_size:,} bytes; {largest:,} are allowed."
        raise SettingError(text, hint=hint)
