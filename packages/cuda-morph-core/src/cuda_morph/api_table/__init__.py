"""The one table of CUDA names: what each of them does while cuda-morph is active.

Runtime, ``explain``, the docs and the tests all read ``cuda_api.json`` through this module.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from cuda_morph.records import Treatment


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRow:
    """One CUDA name."""

    name: str
    """Qualified name, e.g. ``torch.cuda.synchronize``."""
    kind: str
    """``function``, ``class``, ``variable``, ``submodule`` or ``c_function``."""
    treatment: Treatment
    how: str
    """Who answers: ``answer`` (a function of ours), ``torch`` (PyTorch's own code over the device
    protocol), ``c`` (a supplied ``torch._C`` function), ``class`` or ``refuse``."""
    note: str = ""
    replacement: str = ""


@lru_cache(maxsize=1)
def load() -> tuple[ApiRow, ...]:
    """Returns all rows, sorted by name."""
    text = resources.files(__package__).joinpath("cuda_api.json").read_text(encoding="utf-8")
    return tuple(
        ApiRow(**{**row, "treatment": Treatment(row["treatment"])})
        for row in json.loads(text)["rows"]
    )


@lru_cache(maxsize=1)
def by_name() -> dict[str, ApiRow]:
    """Returns the rows by qualified name."""
    return {row.name: row for row in load()}


def rows_answered_by(how: str) -> tuple[ApiRow, ...]:
    """Returns the rows with that `ApiRow.how`."""
    return tuple(row for row in load() if row.how == how)
