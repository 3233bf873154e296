"""The rules of ``cuda-morph check``: what is looked for, why it matters and what to do.

They are data, in ``rules.json``, because the command, its formats and the documents all read them.
Codes are stable and never reused. The hundreds group them: 1 devices, 2 names of PyTorch, 3
distributed, 4 other libraries, 5 compiled code, 7 settings and packages, 9 files.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from cuda_morph.frozen_record import frozen_record
from cuda_morph.scan.finding import Effort, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping


@frozen_record
class Rule:
    """One kind of CUDA dependence."""

    code: str
    name: str
    summary: str
    why: str
    """What happens without cuda-morph on another accelerator."""
    advice: str
    """What to do."""
    verdict: Verdict
    """Holds where the finding's symbol has no row of its own in a table."""
    effort: Effort
    example: str

    @property
    def group(self) -> str:
        """The first three characters of the code."""
        return self.code[:3]


def _read() -> Mapping[str, Any]:
    path = Path(__file__).with_name("rules.json")
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return data


def _rule(row: dict[str, str]) -> Rule:
    verdict, effort = Verdict[row.pop("verdict").upper()], Effort(row.pop("effort"))
    return Rule(**row, verdict=verdict, effort=effort)


_DATA = _read()

GROUPS: Mapping[str, str] = MappingProxyType(_DATA["groups"])
"""What each group of rules is about, by the first three characters of its codes."""

RULES: Mapping[str, Rule] = MappingProxyType({row["code"]: _rule(row) for row in _DATA["rules"]})
"""Every rule by code."""


def selects(pattern: str, code: str) -> bool:
    """Tells whether a pattern of ``--select`` or ``--ignore`` covers a rule.

    Args:
        pattern: A code or the beginning of one: ``CM204``, ``CM2``, ``CM``.
        code: Code of a rule.

    Returns:
        True when it does.
    """
    return code.startswith(pattern.upper())
