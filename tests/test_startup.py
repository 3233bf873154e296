"""Start-up stays light: what a user waits for each time imports nothing heavy."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "rich", "numpy", "transformers", "libcst")
PROBE = "import sys, {module}; print(*sorted(set({heavy!r}) & set(sys.modules)))"


@pytest.mark.parametrize(
    "module",
    ["cuda_morph", "cuda_morph.cli.entry", "cuda_morph.plugins", "cuda_morph.inheritance"],
)
def test_import_brings_nothing_heavy(module):
    code = PROBE.format(module=module, heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_the_probe_sees_a_heavy_import():
    code = PROBE.format(module="rich.console", heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["rich"]
