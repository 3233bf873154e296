"""``from torch.cuda import empty_cache`` becomes a name for the accelerator's own function."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from cuda_morph.port.expressions import (
    ACCELERATOR,
    DEVICE_MODULE,
    DEVICE_TYPE,
    EVERYWHERE,
)
from cuda_morph.port.module_names import imports_torch

if TYPE_CHECKING:
    from cuda_morph.scan.finding import Finding


class MovedImports:
    """The imports from torch.cuda at the head of a module that can go.

    The names stay, so that their uses, and modules that import them from here, need no change.

    Args:
        module: The module.
        torch: Its name for torch.
        head: How many statements stand before the place of the definitions.
    """

    def __init__(self, module: cst.Module, torch: str, head: int) -> None:
        self._torch = torch
        self.names: dict[str, str] = {}
        self.used: set[str] = set()
        """The names of a ported module that the new statements need."""
        for statement in module.body[:head]:
            names = _names_of(statement)
            if names and names.keys() <= ACCELERATOR.keys() | EVERYWHERE:
                self.names |= names
                if not names.keys() <= ACCELERATOR.keys():
                    self.used |= {DEVICE_TYPE, DEVICE_MODULE}

    def handled(self, findings: list[Finding], text: str) -> set[int]:
        """Returns the numbers of the findings that are settled: the imports, and bare names.

        Args:
            findings: All findings of the module.
            text: Its source.
        """
        lines = text.split("\n")
        settled = set()
        for number, found in enumerate(findings):
            place = found.place
            source = lines[place.line - 1][place.column - 1 : place.end_column - 1]
            name, bound = source.partition(" as ")[0].strip(), source.rpartition(" as ")[2].strip()
            wanted = found.symbol.rpartition(".")[2]
            one_line = place.line == place.end_line and found.rule == "CM201"
            if one_line and (
                (name == wanted and name in self.names) or self.names.get(wanted) == bound
            ):
                settled.add(number)
        return settled

    def without(self, module: cst.Module) -> cst.Module:
        """Returns the module without these imports.

        Args:
            module: The module.
        """
        body: list[cst.BaseStatement] = []
        named = imports_torch(module)
        lines: list[cst.EmptyLine] = []
        for statement in module.body:
            names = _names_of(statement)
            if names and names.items() <= self.names.items():
                lines += getattr(statement, "leading_lines", ())
                if named:
                    continue
                named, kept = True, cst.parse_statement("import torch\n")
            else:
                kept = statement
            if lines and isinstance(kept, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
                leading = [*lines, *getattr(kept, "leading_lines", ())]
                kept, lines = kept.with_changes(leading_lines=leading), []
            body.append(kept)
        return module.with_changes(body=body)

    def statements(self) -> list[cst.SimpleStatementLine]:
        """Returns the assignments that take the imports' place."""
        found = []
        for name, bound in self.names.items():
            if name in ACCELERATOR:
                source = f"{bound} = {self._torch}.accelerator.{ACCELERATOR[name]}\n"
            else:
                source = f"{bound} = {DEVICE_MODULE}.{name}\n"
            statement = cst.parse_statement(source)
            if isinstance(statement, cst.SimpleStatementLine):
                found.append(statement)
        return found


def _names_of(statement: cst.CSTNode) -> dict[str, str]:
    """The names of a plain ``from torch.cuda import ...``, and what they are called here."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return {}
    line = statement.body[0]
    if not isinstance(line, cst.ImportFrom) or line.relative or line.module is None:
        return {}
    if isinstance(line.names, cst.ImportStar):
        return {}
    if cst.Module([]).code_for_node(line.module) != "torch.cuda":
        return {}
    return {
        alias.evaluated_name: alias.evaluated_alias or alias.evaluated_name for alias in line.names
    }
