"""Scanning one file, whatever is in it."""

from __future__ import annotations

import io
import re
import tokenize
from typing import TYPE_CHECKING

from cuda_morph.frozen_record import frozen_record
from cuda_morph.scan.finding import Finding, Place
from cuda_morph.scan.notebook import scan_notebook
from cuda_morph.scan.python_source import scan_python
from cuda_morph.scan.source_files import MAX_SIZE
from cuda_morph.scan.text_sources import scan_text

if TYPE_CHECKING:
    from pathlib import Path

_NOQA = re.compile(r"#\s*noqa(?::\s*(?P<codes>[A-Z]+\d+(?:[,\s]+[A-Z]+\d+)*))?", re.IGNORECASE)


@frozen_record
class FileResult:
    """What one file was found to depend on."""

    path: str
    kind: str
    lines: int = 0
    findings: tuple[Finding, ...] = ()
    suppressed: int = 0
    """Findings that a ``# noqa`` comment hides."""
    skipped: bool = False
    """True for a binary file, which is nobody's source."""


def scan_file(path: Path, kind: str, max_size: int = MAX_SIZE) -> FileResult:
    """Finds the CUDA dependences of a file.

    Args:
        path: The file.
        kind: What it is read as, see `cuda_morph.scan.source_files.kind_of`.
        max_size: Bytes above which it is not read.

    Returns:
        The result; a file that cannot be read, decoded or parsed has a finding that says so.
    """
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise OSError("not a regular file")  # noqa: TRY301 - a pipe would be waited for
        if size > max_size:
            return _problem(path, kind, "CM904", f"{size:,} bytes, limit {max_size:,}")
        data = path.read_bytes()
    except OSError as error:
        return _problem(path, kind, "CM902", error.strerror or str(error))
    if kind not in {"python", "notebook"} and b"\0" in data[:8192]:
        return FileResult(path=str(path), kind=kind, skipped=True)
    text, encoding_problem = _decode(data, kind)
    findings = list(_scan(text, kind))
    if encoding_problem:
        findings.insert(0, Finding(rule="CM903", place=Place(line=1), symbol=encoding_problem))
    kept = _without_suppressed(text, findings) if kind != "notebook" else findings
    return FileResult(
        path=str(path),
        kind=kind,
        lines=text.count("\n") + (not text.endswith("\n") and bool(text)),
        findings=tuple(kept),
        suppressed=len(findings) - len(kept),
    )


def scan_source(text: str) -> list[Finding]:
    """Finds the CUDA dependences of a Python source that no ``# noqa`` hides.

    Args:
        text: The source.

    Returns:
        The findings in order.

    Raises:
        SyntaxError: It does not parse.
    """
    return _without_suppressed(text, scan_python(text))


def _problem(path: Path, kind: str, rule: str, why: str) -> FileResult:
    finding = Finding(rule=rule, place=Place(line=1), symbol=why)
    return FileResult(path=str(path), kind=kind, findings=(finding,))


def _decode(data: bytes, kind: str) -> tuple[str, str]:
    """Returns the text and, where bytes had to be replaced, what was wrong."""
    encoding = "utf-8-sig" if data.startswith(b"\xef\xbb\xbf") else "utf-8"
    if kind == "python" and (b"coding" in data[:400] or not data.isascii()):
        try:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        except SyntaxError as error:
            return data.decode("utf-8", errors="replace"), str(error)
    try:
        return data.decode(encoding), ""
    except UnicodeDecodeError as error:
        return data.decode(encoding, errors="replace"), f"{encoding}: {error.reason}"


def _scan(text: str, kind: str) -> list[Finding]:
    if kind not in {"python", "notebook"}:
        return scan_text(text, kind)
    try:
        return scan_python(text) if kind == "python" else scan_notebook(text)
    except SyntaxError as error:
        place = Place(line=error.lineno or 1, column=max(error.offset or 1, 1))
        return [Finding(rule="CM901", place=place, symbol=error.msg or "cannot be parsed")]


def _without_suppressed(text: str, findings: list[Finding]) -> list[Finding]:
    if not findings or "noqa" not in text.lower():
        return findings
    lines = re.split(r"\r\n|\r|\n", text)
    return [found for found in findings if not _is_suppressed(lines, found)]


def _is_suppressed(lines: list[str], found: Finding) -> bool:
    """A comment on the first or last line of the place; without codes it hides everything."""
    for number in {found.place.line, found.place.end_line or found.place.line}:
        match = _NOQA.search(lines[number - 1]) if 0 < number <= len(lines) else None
        if match:
            codes = re.split(r"[,\s]+", match["codes"].upper()) if match["codes"] else []
            if not codes or found.rule in codes:
                return True
    return False
