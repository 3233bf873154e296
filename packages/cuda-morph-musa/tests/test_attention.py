"""The attention kernel: translation to torch_musa's operator, and the operator's simulation."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("cuda_morph_conformance")

PROGRAM = Path(__file__).with_name("attention_on_simulation.py")


def counts(mistake: str) -> tuple[int, int]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_MORPH")}
    done = subprocess.run(
        [sys.executable, str(PROGRAM), mistake],
        env=clean | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    problems, answers = done.stdout.split()[-2:]
    return int(problems), int(answers)


@pytest.mark.long
def test_every_case_of_the_grid_is_right() -> None:
    problems, answers = counts("right")
    assert problems == 0
    assert answers > 10


@pytest.mark.long
@pytest.mark.parametrize("mistake", ["scale", "causal"])
def test_a_wrong_translation_gives_wrong_numbers(mistake: str) -> None:
    problems, _ = counts(mistake)
    assert problems > 0


@pytest.mark.long
def test_heads_in_the_wrong_place_do_not_go_unnoticed() -> None:
    with pytest.raises(AssertionError, match="Mismatch in shape"):
        counts("heads")
