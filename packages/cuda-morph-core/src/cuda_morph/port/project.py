"""Porting the files of a tree: planning, writing all or nothing, and taking it back."""

from __future__ import annotations

import ast
import codecs
import contextlib
import difflib
import re
from typing import TYPE_CHECKING

from cuda_morph.frozen_record import frozen_record
from cuda_morph.port.activation_lines import activate_source, is_program
from cuda_morph.port.source_port import PortedSource, port_source
from cuda_morph.scan.source_files import find_files

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from cuda_morph.scan.finding import Finding

_OWN_METHOD = re.compile(
    r"^\s*(?:async\s+)?def (cuda|is_cuda)\b|^[^#\n]*\.(is_cuda)\s*(?::[^=\n]*)?=(?!=)",
    re.MULTILINE,
)
"""A method of that name, or an attribute that the project sets itself."""
_REPLACED = re.compile(r"""patch\(\s*["']([\w.]*?)\.?\btorch\.cuda["']""")


@frozen_record
class FilePlan:
    """What porting does to one file."""

    path: Path
    before: bytes
    after: bytes
    rewritten: tuple[Finding, ...] = ()
    left: tuple[Finding, ...] = ()
    unsafe_left: int = 0
    problem: str = ""
    """Why nothing was done, when the file could not be read, parsed or kept valid."""

    @property
    def changed(self) -> bool:
        """True when the file gets another text."""
        return self.before != self.after

    def diff(self) -> str:
        """Returns the change as a unified diff."""
        before = self.before.decode(errors="replace").splitlines(keepends=True)
        after = self.after.decode(errors="replace").splitlines(keepends=True)
        lines = difflib.unified_diff(before, after, f"a/{self.path}", f"b/{self.path}")
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def plan(
    paths: Sequence[Path],
    *,
    activate: bool = False,
    unsafe: bool = False,
    exclude: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
) -> list[FilePlan]:
    """Works out the change of every Python file, without writing anything.

    Args:
        paths: Files and folders.
        activate: Only add the activation to programs, instead of rewriting.
        unsafe: Also make changes whose meaning may differ on an accelerator.
        exclude: Glob patterns of paths or names to leave out.
        progress: Called with the number of files done and of all files.

    Returns:
        A plan per file that depends on CUDA or has a problem.
    """
    files = [path for path, kind in find_files(paths, exclude) if kind == "python"]
    named = {path for path in paths if path.is_file()}
    own = _own_methods(files)
    replaced = _where_torch_cuda_is_replaced(files)
    plans = []
    for number, path in enumerate(files, 1):
        found = (
            _activated(path, is_named=path in named)
            if activate
            else _plan_file(path, own, unsafe=unsafe, keep_names=path in replaced)
        )
        if found.changed or found.left or found.problem:
            plans.append(found)
        if progress:
            progress(number, len(files))
    return plans


def _own_methods(files: Sequence[Path]) -> frozenset[str]:
    found: set[str] = set()
    for path in files:
        with contextlib.suppress(OSError):  # reported when the file itself is looked at
            text = path.read_text(encoding="utf-8", errors="replace")
            found |= {name for pair in _OWN_METHOD.findall(text) for name in pair}
    return frozenset(found - {""})


def _where_torch_cuda_is_replaced(files: Sequence[Path]) -> set[Path]:
    """Tests that put something else in the place of the whole module, and what they test by it."""
    found = set()
    for path in files:
        with contextlib.suppress(OSError):
            text = path.read_text(encoding="utf-8", errors="replace")
            for name in _REPLACED.findall(text):
                end = tuple(name.split("."))
                tested = (file for file in files if end[-1:] and _ends_in(file, end))
                found |= {path, *tested}
    return found


def _ends_in(path: Path, parts: tuple[str, ...]) -> bool:
    whole = path.resolve().with_suffix("").parts
    whole = whole[:-1] if whole[-1] == "__init__" else whole
    return whole[-len(parts) :] == parts


def _activated(path: Path, *, is_named: bool) -> FilePlan:
    def change(text: str) -> PortedSource:
        after = activate_source(text) if is_named or is_program(text) else text
        return PortedSource(before=text, after=after)

    return _changed(path, change)


def _plan_file(path: Path, own: frozenset[str], *, unsafe: bool, keep_names: bool) -> FilePlan:
    def change(text: str) -> PortedSource:
        return port_source(text, unsafe=unsafe, own_methods=own, keep_names=keep_names)

    return _changed(path, change)


def _changed(path: Path, change: Callable[[str], PortedSource]) -> FilePlan:
    data = b""
    try:
        data = path.read_bytes()
        mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
        ported = change(data.removeprefix(mark).decode("utf-8"))
        ast.parse(ported.after)
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError) as error:
        return FilePlan(path=path, before=data, after=data, problem=_describe(error))
    return FilePlan(
        path=path,
        before=data,
        after=mark + ported.after.encode("utf-8"),
        rewritten=ported.rewritten,
        left=ported.left,
        unsafe_left=ported.unsafe_left,
    )


def _describe(error: BaseException) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "is not UTF-8"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return (
        f"cannot be parsed: {error}" if str(error) else f"cannot be parsed: {type(error).__name__}"
    )
