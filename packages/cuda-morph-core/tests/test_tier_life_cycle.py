"""Activating, failing and deactivating, on every interception tier."""

from __future__ import annotations

import pytest
import tier_cells
from tier_cells import Cell

CYCLE = ("life_cycle",)
LIBRARIES = ("views_of_libraries",)
MATRIX = [
    *(Cell(tier, "native", "cpu", CYCLE, activate=False) for tier in ("T0", "T1", "T3")),
    *(Cell(tier, "native", "sim", CYCLE, activate=False) for tier in ("T0", "T1", "T3")),
    *(Cell(tier, "cuda", "sim", CYCLE, activate=False) for tier in ("T0", "T1")),
    *(Cell(tier, "native", "branching", LIBRARIES) for tier in ("T0", "T1", "T3")),
    *(Cell(tier, "cuda", "branching", LIBRARIES) for tier in ("T0", "T1")),
]

start_processes = tier_cells.starting_fixture()


@pytest.mark.parametrize(("cell", "check"), tier_cells.parameters(MATRIX))
def test_behaviour(cell: Cell, check: str) -> None:
    tier_cells.judge(cell, check)
