"""CUDA dependences of a Python file, found in its syntax tree.

Only statements with a line that mentions something of interest are looked into: most of a file is
skipped at the cost of a bisection.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from typing import TYPE_CHECKING

from cuda_morph.scan import cuda_text
from cuda_morph.scan.bindings import Bindings
from cuda_morph.scan.finding import Finding, Place
from cuda_morph.scan.python_detectors import Detectors

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINE_END = re.compile("\n")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def scan_python(text: str) -> list[Finding]:
    """Finds the CUDA dependences of a Python source.

    Args:
        text: The source.

    Returns:
        Findings in the order of their places.

    Raises:
        SyntaxError: It does not parse. Sources that make the parser give up do this too.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
    offsets = sorted(cuda_text.mentions(text))
    if not offsets:
        return []
    try:
        tree = ast.parse(text)
    except (ValueError, RecursionError, MemoryError) as error:  # null bytes, endless nesting
        raise SyntaxError(str(error) or type(error).__name__) from error
    scanner = _Scanner(text, offsets)
    scanner.scan(tree)
    return sorted(scanner.findings, key=lambda found: (found.place.line, found.place.column))


class _Scanner:
    """Walks one tree; the detectors look at single nodes."""

    def __init__(self, text: str, offsets: list[int]) -> None:
        self.findings: list[Finding] = []
        self._text = text
        self._lines = text.split("\n")  # splitlines() knows more line ends than Python does
        self._bindings = Bindings()
        self._detectors = Detectors(self._bindings, self._report)
        self._ends = [match.start() for match in _LINE_END.finditer(text)]
        self._interesting = self._lines_at(offsets)
        self._seen: set[tuple[str, int, int]] = set()

    def scan(self, tree: ast.Module) -> None:
        """Walks a module, and again if names from it are used on lines that mention nothing."""
        self._bindings.enter(tree)
        names = self._imported_names(tree.body)
        if names:
            pattern = re.compile(r"\b(?:" + "|".join(map(re.escape, sorted(names))) + r")\b")
            more = self._lines_at([match.start() for match in pattern.finditer(self._text)])
            self._interesting = sorted({*self._interesting, *more})
        self._walk_statements(tree.body)
        self._bindings.leave()

    def _lines_at(self, offsets: list[int]) -> list[int]:
        return list(dict.fromkeys(bisect_left(self._ends, offset) + 1 for offset in offsets))

    def _imported_names(self, body: list[ast.stmt]) -> set[str]:
        """Names for something of CUDA that do not say so: ``from torch.cuda import Stream``."""
        found: set[str] = set()
        for node in self._interesting_statements(body):
            if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                pairs = [(a.asname or a.name, f"{node.module}.{a.name}") for a in node.names]
            elif isinstance(node, ast.Import):
                pairs = [(a.asname, a.name) for a in node.names if a.asname]
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute):
                name = self._bindings.resolve(node.value) or ""
                pairs = [
                    (target.id, name) for target in node.targets if isinstance(target, ast.Name)
                ]
            else:
                continue
            found |= {bound for bound, name in pairs if self._detectors.concerns(name)}
        return found

    def _interesting_statements(self, body: list[ast.stmt]) -> Iterator[ast.stmt]:
        for statement in body:
            if self._is_interesting(statement):
                yield statement
                for part in ast.iter_child_nodes(statement):
                    inner = part if isinstance(part, ast.stmt) else getattr(part, "body", None)
                    if isinstance(inner, ast.stmt):
                        yield from self._interesting_statements([inner])
                    elif isinstance(inner, list):  # an exception handler, a case
                        yield from self._interesting_statements(inner)

    def _is_interesting(self, node: ast.AST) -> bool:
        first = min(
            [node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))]  # type: ignore[attr-defined]
        )
        position = bisect_left(self._interesting, first)
        last = getattr(node, "end_lineno", first) or first
        return position < len(self._interesting) and self._interesting[position] <= last

    def _walk_statements(self, body: list[ast.stmt]) -> None:
        for statement in body:
            if self._is_interesting(statement):
                self._walk(statement)

    def _walk(self, node: ast.AST) -> None:
        self._detectors.look(node)
        if isinstance(node, (ast.Attribute, ast.Call)) and self._bindings.resolve(node) is not None:
            return  # the whole chain has been looked at, or getattr with a text
        scoped = isinstance(node, _SCOPES)
        if scoped:
            self._bindings.enter(node)
        for _, value in ast.iter_fields(node):
            if isinstance(value, list):
                if value and isinstance(value[0], ast.stmt):
                    self._walk_statements(value)
                else:
                    for part in value:
                        if isinstance(part, ast.AST):
                            self._walk(part)
            elif isinstance(value, ast.AST):
                self._walk(value)
        if scoped:
            self._bindings.leave()

    def _report(self, rule: str, node: ast.AST, symbol: str, detail: str = "") -> None:
        place = self._place(node)
        key = (rule, place.line, place.column)
        if key in self._seen:
            return
        self._seen.add(key)
        line = self._lines[place.line - 1].strip() if place.line <= len(self._lines) else ""
        self.findings.append(
            Finding(rule=rule, place=place, symbol=symbol, detail=detail, excerpt=line[:160])
        )

    def _place(self, node: ast.AST) -> Place:
        line, offset = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        end_line = getattr(node, "end_lineno", None) or line
        end_offset = getattr(node, "end_col_offset", None) or offset
        return Place(
            line=line,
            column=self._column(line, offset),
            end_line=end_line,
            end_column=self._column(end_line, end_offset),
        )

    def _column(self, line: int, offset: int) -> int:
        """Turns an offset in UTF-8 bytes into a column of characters."""
        text = self._lines[line - 1] if 0 < line <= len(self._lines) else ""
        if text.isascii():
            return offset + 1
        return len(text.encode()[:offset].decode(errors="ignore")) + 1
