"""The shim over adapters that have few names, or all of CUDA's under other parameter names.

The same checks as on every tier: what an adapter lacks must be answered all the same.
"""

from __future__ import annotations

import pytest
import tier_cells
from test_tiers import COMMON
from tier_cells import Cell

PROGRAMS = (*COMMON, "simulated_device", "surface_spellings")
MATRIX = [
    Cell(tier, view, f"sim:{adapter}", PROGRAMS)
    for adapter in ("narrow", "wide")
    for tier, view in (("T0", "cuda"), ("T0", "native"), ("T1", "cuda"), ("T3", "native"))
]

USUAL = [MATRIX[0], MATRIX[5]]
"""One cell of each adapter; the other tiers and views are tested at length."""
MORE = [cell for cell in MATRIX if cell not in USUAL]

start_processes = tier_cells.starting_fixture()


@pytest.mark.parametrize(("cell", "check"), tier_cells.parameters(USUAL))
def test_behaviour(cell: Cell, check: str) -> None:
    tier_cells.judge(cell, check)


@pytest.mark.long
@pytest.mark.parametrize(("cell", "check"), tier_cells.parameters(MORE))
def test_behaviour_on_every_tier(cell: Cell, check: str) -> None:
    tier_cells.judge(cell, check)
