"""Which files of a tree are looked at, and as what."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_SIZE = 5_000_000
"""Bytes; a larger file is data or generated."""

SKIPPED_FOLDERS = frozenset(
    {
        ".bzr", ".direnv", ".eggs", ".git", ".hg", ".ipynb_checkpoints", ".mypy_cache", ".nox",
        ".pytest_cache", ".ruff_cache", ".svn", ".tox", ".venv", "__pycache__", "node_modules",
        "site-packages",
    }
)  # fmt: skip
"""Folders that hold no source of the project. One that is named on the command line is read."""

_BY_SUFFIX = {
    ".py": "python",
    ".pyi": "python",
    ".ipynb": "notebook",
    ".cu": "cuda",
    ".cuh": "cuda",
    ".c": "native",
    ".cc": "native",
    ".cpp": "native",
    ".cxx": "native",
    ".h": "native",
    ".hh": "native",
    ".hpp": "native",
    ".sh": "shell",
    ".bash": "shell",
    ".zsh": "shell",
    ".slurm": "shell",
    ".sbatch": "shell",
    ".dockerfile": "image",
}
_BY_NAME = (
    (re.compile(r"(Dockerfile|Containerfile)([.-].*)?"), "image"),
    (re.compile(r"(docker-)?compose(\..*)?\.ya?ml"), "image"),
    (re.compile(r"(.*[-_.])?(requirements|constraints)([-_.].*)?\.(txt|in)"), "requirements"),
    (re.compile(r"pyproject\.toml|setup\.cfg|Pipfile|environment[^/]*\.ya?ml"), "requirements"),
    (re.compile(r"Makefile|makefile|\.env(\..*)?"), "shell"),
)


def kind_of(path: Path) -> str | None:
    """Returns as what a file is read, or ``None`` when it is not.

    Args:
        path: Its path; only the name counts.
    """
    kind = _BY_SUFFIX.get(path.suffix.lower())
    if kind is None:
        kind = next((kind for name, kind in _BY_NAME if name.fullmatch(path.name)), None)
    if kind is None and path.parent.name == "requirements" and path.suffix in {".txt", ".in"}:
        kind = "requirements"
    return kind


def find_files(paths: Sequence[Path], exclude: Sequence[str] = ()) -> Iterator[tuple[Path, str]]:
    """Yields the files to look at, each once, sorted within its folder.

    Links to folders are not followed, so a loop of links ends nothing.

    Args:
        paths: Files and folders. A file that is named here is read whatever it is called.
        exclude: Glob patterns of paths or names to leave out.

    Yields:
        The path and its kind.
    """
    seen: set[tuple[int, int]] = set()
    for path in paths:
        files = _walk(path, exclude) if path.is_dir() else iter([path])
        for file in files:
            kind = kind_of(file) or ("python" if file == path else None)
            if kind is None:
                continue
            try:
                status = file.stat()
            except OSError:
                yield file, kind  # reported as unreadable
                continue
            key = (status.st_dev, status.st_ino)
            if key not in seen:
                seen.add(key)
                yield file, kind


def _walk(folder: Path, exclude: Sequence[str]) -> Iterator[Path]:
    for root, folders, files in os.walk(folder, onerror=lambda _: None):
        here = Path(root)
        folders[:] = sorted(
            name
            for name in folders
            if name not in SKIPPED_FOLDERS and not _is_excluded(here / name, folder, exclude)
        )
        for name in sorted(files):
            file = here / name
            if not _is_excluded(file, folder, exclude) and file.exists():
                yield file


def _is_excluded(path: Path, root: Path, patterns: Sequence[str]) -> bool:
    relative = path.relative_to(root)
    return any(relative.match(pattern) or path.match(pattern) for pattern in patterns)
