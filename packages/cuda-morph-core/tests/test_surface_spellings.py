"""What real programs write, beyond the functions of the API table."""

from __future__ import annotations

import pytest
import tier_cells
from tier_cells import Cell

PROGRAMS = ("surface_spellings", "surface_backends")
MATRIX = [
    Cell(tier, view, backend, PROGRAMS)
    for tier, backend in (("T0", "sim"), ("T0", "cpu"), ("T1", "sim"))
    for view in ("cuda", "native")
]

start_processes = tier_cells.starting_fixture()


@pytest.mark.parametrize(("cell", "check"), tier_cells.parameters(MATRIX))
def test_spelling(cell: Cell, check: str) -> None:
    tier_cells.judge(cell, check)
