"""Runs the checks of one program under one backend, view and tier; prints one JSON line for each.

Usage: python checks.py PROGRAM BACKEND VIEW, with the tier in CUDA_MORPH_TIER.
"""

from __future__ import annotations

import json
import sys
import traceback
from importlib import import_module
from types import SimpleNamespace


def main() -> None:
    name, backend, view = sys.argv[1:]
    program = import_module(name)
    import torch

    import cuda_morph

    activation = cuda_morph.activate(backend, view=view)

    world = SimpleNamespace(backend=backend, view=view, activation=activation)
    for key, check in list(vars(program).items()):
        if key.startswith("check_"):
            torch.manual_seed(0)
            torch._dynamo.reset()
            try:
                check(world)
                error = ""
            except BaseException:
                error = traceback.format_exc()
            sys.stdout.write("CHECK " + json.dumps({"check": key, "error": error}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
