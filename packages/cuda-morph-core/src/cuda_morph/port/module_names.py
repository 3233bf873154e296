"""The names of a module that porting needs: torch's, and those that it adds."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from cuda_morph.port.expressions import DEVICE_MODULE, DEVICE_TYPE, definition


def torch_name(module: cst.Module) -> str | None:
    """Returns the name under which a module imports torch at its top level, if it does."""
    for statement in module.body:
        for line in m.findall(statement, m.Import()) if _is_top(statement) else ():
            if isinstance(line, cst.Import):
                for alias in line.names:
                    bound = _bound(alias)
                    if bound:
                        return bound
    return None


def _is_top(statement: cst.CSTNode) -> bool:
    return isinstance(statement, (cst.SimpleStatementLine, cst.Try))


def _bound(alias: cst.ImportAlias) -> str | None:
    full = alias.evaluated_name
    if alias.asname is not None:
        return alias.evaluated_alias if full == "torch" else None
    return "torch" if full == "torch" or full.startswith("torch.") else None


def uses_name(module: cst.Module, name: str) -> bool:
    """Tells whether a name occurs in a module."""
    return bool(m.findall(module, m.Name(name)))


def insert_definitions(module: cst.Module, torch: str, names: set[str]) -> cst.Module:
    """Defines what ported code uses, after the imports at the head of the module.

    Args:
        module: The ported module.
        torch: The name under which it imports torch.
        names: Names that the ported code uses.

    Returns:
        The module; unchanged when they are defined already.
    """
    defined = {name for name in (DEVICE_TYPE, DEVICE_MODULE) if _is_defined(module, name)}
    wanted = names - defined
    if not wanted:
        return module
    statements = definition(torch, names)
    if DEVICE_TYPE in defined:
        statements = [statements[-1].with_changes(leading_lines=[])]
    position = _after_imports(module, torch)
    if DEVICE_TYPE in defined:
        position = 1 + next(
            number
            for number, statement in enumerate(module.body)
            if m.matches(statement, _assignment(DEVICE_TYPE))
        )
    body = [*module.body[:position], *statements, *module.body[position:]]
    following = body[position + len(statements)] if position + len(statements) < len(body) else None
    if isinstance(following, cst.SimpleStatementLine) and not following.leading_lines:
        spaced = following.with_changes(leading_lines=[cst.EmptyLine(indent=False)])
        body[position + len(statements)] = spaced
    return module.with_changes(body=body)


def _assignment(name: str) -> m.SimpleStatementLine:
    return m.SimpleStatementLine(
        body=[m.AtLeastN(m.Assign(targets=[m.AssignTarget(m.Name(name))]), n=1)]
    )


def _is_defined(module: cst.Module, name: str) -> bool:
    return any(m.matches(statement, _assignment(name)) for statement in module.body)


def _after_imports(module: cst.Module, torch: str) -> int:
    """After the first run of imports that has torch in it; docstrings and comments may precede."""
    seen_torch = False
    for number, statement in enumerate(module.body):
        is_import = bool(_is_top(statement) and m.findall(statement, m.Import() | m.ImportFrom()))
        if seen_torch and not is_import:
            return number
        if is_import:
            probe = cst.Module(body=[statement])
            seen_torch = seen_torch or torch_name(probe) == torch
    return len(module.body)
