"""The least that a program needs: two lines that activate cuda-morph before anything else."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from cuda_morph.scan.file_scan import scan_source

LINES = ("import cuda_morph\n", 'cuda_morph.activate(view="cuda")\n')
"""The cuda view: the program goes on seeing a CUDA machine."""


def activate_source(text: str) -> str:
    """Puts the activation at the head of a program.

    Args:
        text: Source of a file that is started as a program.

    Returns:
        The new text; the same when it depends on nothing of CUDA or activates already.

    Raises:
        SyntaxError: It does not parse.
    """
    if not scan_source(text):
        return text
    try:
        module = cst.parse_module(text)
    except cst.ParserSyntaxError as error:
        raise SyntaxError(f"line {error.raw_line}: {error.message}") from error
    if m.findall(module, m.Call(func=m.Attribute(m.Name("cuda_morph"), m.Name("activate")))):
        return text
    position = _head(module)
    lines = [cst.parse_statement(line) for line in LINES]
    body = [*module.body[:position], *lines, *module.body[position:]]
    return module.with_changes(body=body).code


def is_program(text: str) -> bool:
    """Tells a file that is started from one that is only imported, by its ``__main__`` guard."""
    return "__main__" in text


def _head(module: cst.Module) -> int:
    """Behind the docstring and imports from ``__future__``, which must come first."""
    position = 0
    for number, statement in enumerate(module.body):
        future = m.matches(
            statement,
            m.SimpleStatementLine(body=[m.ImportFrom(module=m.Name("__future__")), m.ZeroOrMore()]),
        )
        docstring = number == 0 and m.matches(
            statement,
            m.SimpleStatementLine(body=[m.Expr(m.SimpleString() | m.ConcatenatedString())]),
        )
        if future or docstring:
            position = number + 1
    return position
