"""Templates to files: a project is written completely or not at all."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from cuda_morph.errors import MorphError, PluginError, SettingError

if TYPE_CHECKING:
    from collections.abc import Mapping

TEMPLATES = Path(__file__).with_name("templates")
_SUFFIX = ".tmpl"
_DOT = "dot-"
_CAPITALS = re.compile("[A-Z]+")


def render(folder: Path, values: Mapping[str, str]) -> dict[str, str]:
    """Fills in a folder of templates.

    Templates are written for :class:`string.Template` and end in ``.tmpl``. A part of a path that
    begins with ``dot-`` gets a dot, so that template folders hold no hidden files; a word in
    capitals, such as ``PACKAGE``, is the value of that name in small letters, if there is one.

    Args:
        folder: The templates.
        values: What stands for the placeholders.

    Returns:
        Texts by path below the project's folder, with slashes.

    Raises:
        PluginError: A template cannot be read, or names an unknown placeholder.
    """
    files: dict[str, str] = {}
    for path in sorted(folder.rglob(f"*{_SUFFIX}")):
        parts = path.relative_to(folder).with_suffix("").parts
        try:
            text = Template(path.read_text(encoding="utf-8")).substitute(values)
            files["/".join(_part(part, values) for part in parts)] = text
        except (OSError, KeyError, ValueError) as error:
            raise PluginError(
                f"The template {path.name} cannot be used: {error!r}.", hint=f"It is in {folder}."
            ) from error
    if not files:
        raise PluginError(f"There are no templates in {folder}.", hint="Install its package again.")
    return files


def _part(part: str, values: Mapping[str, str]) -> str:
    if part.startswith(_DOT):
        return f".{part.removeprefix(_DOT)}"
    return _CAPITALS.sub(lambda word: values.get(word[0].lower(), word[0]), part)


def write_project(files: Mapping[str, str], into: Path) -> None:
    """Writes a project, all of it or nothing.

    Args:
        files: Texts by path below the folder.
        into: The folder; it may exist when it is empty.

    Raises:
        SettingError: The folder holds something, or is none.
        MorphError: It cannot be written.
    """
    require_free(into)
    temporary: Path | None = None
    try:
        is_there = into.exists()
        # A folder that is there stays: the user may stand in it, or it is a file system of its own.
        place = into if is_there else into.parent
        place.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{into.name[:40]}-", dir=place))
        for name, text in files.items():
            path = temporary / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        if is_there:
            _move_up(temporary, into)
        else:
            # Such folders are made for their owner alone, and a project is for all.
            temporary.chmod(0o777 & ~_umask(temporary))
            temporary.rename(into)
    except OSError as error:
        raise MorphError(
            f"The project cannot be written to {into}: {error.strerror or error}.",
            hint="Choose another folder with --into.",
            code="CM-E15",
        ) from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def _move_up(folder: Path, into: Path) -> None:
    """Moves what is in a folder, all of it or nothing."""
    moved: list[Path] = []
    try:
        for path in sorted(folder.iterdir()):
            target = into / path.name
            path.rename(target)
            moved.append(target)
    except BaseException:
        for target in moved:
            target.rename(folder / target.name)
        raise


def require_free(into: Path) -> None:
    """Refuses a place where something is already.

    Args:
        into: A folder that will be written.

    Raises:
        SettingError: It holds something, is no folder, or cannot be looked at.
    """
    try:
        taken = into.is_symlink() or (into.exists() and (not into.is_dir() or any(into.iterdir())))
    except (OSError, ValueError) as error:
        raise SettingError(
            f"{into} cannot be used: {error}.", hint="Choose another folder with --into."
        ) from error
    if taken:
        raise SettingError(
            f"{into} is there already and is no empty folder; nothing was written.",
            hint="Choose another folder with --into, or remove it first.",
        )


def _umask(folder: Path) -> int:
    """Reads the mask from what a new folder gets: asking for it directly would change it."""
    probe = folder / ".probe"
    probe.mkdir()
    try:
        return 0o777 & ~probe.stat().st_mode
    finally:
        probe.rmdir()
