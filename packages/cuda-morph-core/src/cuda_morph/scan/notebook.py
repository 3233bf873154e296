"""CUDA dependences of a Jupyter notebook: its code cells read as one program."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cuda_morph.scan.finding import Finding, Place
from cuda_morph.scan.python_source import scan_python
from cuda_morph.scan.text_sources import shell_line

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAGIC = re.compile(r"^(\s*)[%!?]")


def scan_notebook(text: str) -> list[Finding]:
    """Finds the CUDA dependences of a notebook.

    Args:
        text: The file, JSON.

    Returns:
        Findings whose places have the number of the cell, from 1, and the line within it. A cell
        that does not parse is a finding of its own; the others are read.

    Raises:
        SyntaxError: The file is no notebook.
    """
    cells = _code_cells(text)
    lines: list[str] = []
    origin: list[tuple[int, int]] = []
    findings: list[Finding] = []
    for number, source in cells:
        plain, commands = _without_magic(source)
        findings += [_at(found, number) for found in commands]
        problem = _problem(plain)
        if problem:
            findings.append(replace(problem, place=replace(problem.place, cell=number)))
            continue
        own = plain.split("\n")
        lines += own
        origin += [(number, line) for line in range(1, len(own) + 1)]
    for found in scan_python("\n".join(lines)):
        findings.append(_moved(found, origin))
    return sorted(findings, key=lambda found: (found.place.cell or 0, found.place.line))


def _code_cells(text: str) -> list[tuple[int, str]]:
    try:
        data: Any = json.loads(text)
        cells = data["cells"] if "cells" in data else data["worksheets"][0]["cells"]
        return [
            (number, _source(cell))
            for number, cell in enumerate(cells, 1)
            if cell.get("cell_type") == "code"
        ]
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        raise SyntaxError(f"not a notebook: {error}") from error


def _source(cell: Any) -> str:
    source = cell.get("source", cell.get("input", ""))
    return "".join(source) if isinstance(source, list) else str(source)


def _without_magic(source: str) -> tuple[str, list[Finding]]:
    """Blanks the lines that are for the notebook or the shell, and looks at the latter."""
    if source.lstrip().startswith("%%") and not source.lstrip().startswith(("%%time", "%%capture")):
        shell = source.lstrip().startswith(("%%bash", "%%sh", "%%script"))
        return "", list(_commands(source)) if shell else []
    kept, found = [], []
    for number, line in enumerate(source.split("\n"), 1):
        magic = _MAGIC.match(line)
        if magic:
            kept.append(f"{magic[1]}pass")
            found += [replace(f, place=replace(f.place, line=number)) for f in _commands(line)]
        else:
            kept.append(line)
    return "\n".join(kept), found


def _commands(source: str) -> Iterator[Finding]:
    for number, line in enumerate(source.split("\n"), 1):
        command = re.sub(r"^\s*[%!]", ";", line)
        for rule, start, end, symbol in shell_line(command):
            place = Place(line=number, column=start + 1, end_line=number, end_column=end + 1)
            yield Finding(rule=rule, place=place, symbol=symbol, excerpt=line.strip()[:160])


def _problem(source: str) -> Finding | None:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        return Finding(rule="CM901", place=Place(line=line), symbol=str(error))
    return None


def _at(found: Finding, cell: int) -> Finding:
    return replace(found, place=replace(found.place, cell=cell))


def _moved(found: Finding, origin: list[tuple[int, int]]) -> Finding:
    cell, line = origin[found.place.line - 1]
    length = max(found.place.end_line - found.place.line, 0)
    place = replace(found.place, cell=cell, line=line, end_line=line + length)
    return replace(found, place=place)
