"""Children of a program that deactivated are not redirected, though `run` had asked for it."""

import json
import os
import subprocess
import sys

PROGRAM = """
import json, os, subprocess, sys
import torch, cuda_morph
def child():
    code = "import torch, cuda_morph; print(cuda_morph.is_active())"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip()
before = child()
cuda_morph.deactivate()
print(json.dumps([before, child(), "CUDA_MORPH_INHERIT" in os.environ]))
"""


def test_children_inherit_until_deactivation():
    command = [sys.executable, "-m", "cuda_morph", "run", "--backend", "cpu", "-c", PROGRAM]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_MORPH_")}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=kept)
    assert json.loads(done.stdout.splitlines()[-1]) == ["True", "False", False]
