"""The same behaviour on every interception tier, in every view, on every backend.

Each cell of the matrix is one fresh process that runs all checks; each check is a test of its own.
"""

from __future__ import annotations

import pytest
import tier_cells
from tier_cells import Cell

COMMON = (
    "early_references",
    "device_spellings",
    "moving",
    "factories",
    "default_devices",
    "cuda_module",
    "randomness",
    "module_conversion",
    "mixed_precision",
    "checkpoints",
    "harmless_strings",
    "threads",
    "scripting",
    "compiling",
    "dynamo_cells",
)
SIMULATED = (*COMMON, "simulated_device")
MATRIX = [
    *(Cell(tier, "native", "cpu", COMMON) for tier in ("T0", "T1", "T3")),
    *(Cell(tier, "cuda", "cpu", COMMON) for tier in ("T0", "T1", "T3")),
    *(Cell(tier, "native", "sim", SIMULATED) for tier in ("T0", "T1", "T3")),
    *(Cell(tier, "cuda", "sim", SIMULATED) for tier in ("T0", "T1")),
]

start_processes = tier_cells.starting_fixture()


@pytest.mark.parametrize(("cell", "check"), tier_cells.parameters(MATRIX))
def test_behaviour(cell: Cell, check: str) -> None:
    tier_cells.judge(cell, check)
