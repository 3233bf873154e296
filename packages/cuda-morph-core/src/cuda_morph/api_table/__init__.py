"""The one table of CUDA names: what each of them does while cuda-morph is active.

Runtime, ``explain``, the docs and the tests all read ``cuda_api.json`` through this module, and
``cuda_backends.json``, which has the switches of NVIDIA's libraries.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from cuda_morph.records import Treatment

_DATA = Path(__file__).with_name("cuda_api.json")
_LIBRARIES = Path(__file__).with_name("cuda_backends.json")


class ApiRow(NamedTuple):
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
    """Returns the rows of ``torch.cuda`` and of its functions in ``torch._C``, sorted by name."""
    return _read(_DATA)


@lru_cache(maxsize=1)
def library_rows() -> tuple[ApiRow, ...]:
    """Returns the rows of ``torch.backends.cuda`` and ``torch.backends.cudnn``, sorted by name."""
    return _read(_LIBRARIES)


def _read(file: Path) -> tuple[ApiRow, ...]:
    treatments = {treatment.value: treatment for treatment in Treatment}
    rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
    for row in rows:
        row["treatment"] = treatments[row["treatment"]]
    return tuple(ApiRow(**row) for row in rows)


@lru_cache(maxsize=1)
def by_name() -> dict[str, ApiRow]:
    """Returns all rows by qualified name."""
    return {row.name: row for row in (*load(), *library_rows())}


@lru_cache(maxsize=8)
def rows_answered_by(how: str) -> tuple[ApiRow, ...]:
    """Returns the rows of `load` with that `ApiRow.how`."""
    return tuple(row for row in load() if row.how == how)
