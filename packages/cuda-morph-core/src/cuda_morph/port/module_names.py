"""The names of a module that porting needs: torch's, and those that it adds."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from cuda_morph.port.expressions import DEVICE_MODULE, DEVICE_TYPE, definition

_TORCH = "torch"


def torch_name(module: cst.Module) -> str | None:
    """Returns the name of torch at a module's top level.

    Args:
        module: The module.

    Returns:
        The name that it imports torch under; ``torch`` too where it imports only parts of torch and
        the name is free, see `imports_torch`; ``None`` where torch may be missing.
    """
    for statement in module.body:
        bound = _bound_by(statement)
        if bound:
            return bound
    return _TORCH if any(map(_brings_parts, module.body)) and not _is_taken(module) else None


def can_import_torch(module: cst.Module) -> bool:
    """Tells whether a module that has nothing to do with torch's name could import it.

    Args:
        module: The module.
    """
    return any(map(_is_import, module.body)) and not uses_name(module, _TORCH)


def imports_torch(module: cst.Module) -> bool:
    """Tells whether a module imports torch itself at its top level, not only parts of it."""
    return any(_bound_by(statement) for statement in module.body)


def _bound_by(statement: cst.CSTNode) -> str | None:
    for line in m.findall(statement, m.Import()) if _surely_runs(statement) else ():
        if isinstance(line, cst.Import):
            for alias in line.names:
                bound = _bound(alias)
                if bound:
                    return bound
    return None


def _surely_runs(statement: cst.CSTNode) -> bool:
    """Plain statements, and ``try`` unless the module goes on without what it tries to import."""
    if isinstance(statement, cst.Try):
        return all(m.findall(handler, m.Raise()) for handler in statement.handlers)
    return isinstance(statement, cst.SimpleStatementLine)


def _bound(alias: cst.ImportAlias) -> str | None:
    full = alias.evaluated_name
    if alias.asname is not None:
        return alias.evaluated_alias if full == _TORCH else None
    return _TORCH if full == _TORCH or full.startswith("torch.") else None


def _brings_parts(statement: cst.CSTNode) -> bool:
    """Tells ``from torch import nn`` and ``import torch.nn as nn``: torch is there, nameless."""
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    for line in statement.body:
        if isinstance(line, cst.ImportFrom) and not line.relative and line.module is not None:
            if cst.Module([]).code_for_node(line.module).partition(".")[0] == _TORCH:
                return True
        elif isinstance(line, cst.Import) and any(
            alias.evaluated_name.startswith("torch.") for alias in line.names
        ):
            return True
    return False


def _is_taken(module: cst.Module) -> bool:
    """Tells whether a module has something else of the name ``torch``."""
    name = m.Name(_TORCH)
    target = m.AssignTarget(name) | m.AnnAssign(target=name) | m.NamedExpr(target=name)
    other = m.For(target=name) | m.CompFor(target=name) | m.AsName(name=name)
    imported = m.ImportFrom(names=[m.ZeroOrMore(), m.ImportAlias(name=name), m.ZeroOrMore()])
    defined = m.Param(name=name) | m.FunctionDef(name=name)
    return bool(m.findall(module, target | other | imported | defined))


def uses_name(module: cst.Module, name: str) -> bool:
    """Tells whether a name occurs in a module."""
    return bool(m.findall(module, m.Name(name)))


def insert_definitions(
    module: cst.Module,
    torch: str,
    names: set[str],
    moved: list[cst.SimpleStatementLine] | None = None,
) -> cst.Module:
    """Defines what ported code uses, after the imports at the head of the module.

    Args:
        module: The ported module.
        torch: Its name for torch.
        names: Names that the ported code uses.
        moved: Statements that stand behind the definitions, in place of imports.

    Returns:
        The module; unchanged when all is defined already.
    """
    defined = {name for name in (DEVICE_TYPE, DEVICE_MODULE) if _is_defined(module, name)}
    statements: list[cst.BaseStatement] = []
    if names - defined:
        statements = definition(torch, names)
        if DEVICE_TYPE in defined:
            statements = [statements[-1].with_changes(leading_lines=[])]
    if not imports_torch(module):
        statements.insert(0, cst.parse_statement("import torch\n"))
    statements += moved or []
    if not statements:
        return module
    position = head_end(module)
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


def head_end(module: cst.Module) -> int:
    """Returns how many statements stand before the place of the definitions.

    Args:
        module: The module, ported or not.

    Returns:
        The number of statements up to the definitions of an earlier port, or else up to the end of
        the first run of imports that has torch in it, or where none has, of the first run.
    """
    for name in (DEVICE_MODULE, DEVICE_TYPE):
        for number, statement in enumerate(module.body):
            if m.matches(statement, _assignment(name)):
                return number + 1
    brings = next(
        (test for test in (_bound_by, _brings_parts) if any(map(test, module.body))), _is_import
    )
    seen = False
    for number, statement in enumerate(module.body):
        if seen and not _is_import(statement):
            return number
        seen = seen or bool(brings(statement))
    return len(module.body)


def _is_import(statement: cst.CSTNode) -> bool:
    top = isinstance(statement, (cst.SimpleStatementLine, cst.Try))
    return bool(top and m.findall(statement, m.Import() | m.ImportFrom()))
