"""Runs the checks of programs under one backend and view; prints one JSON line for each.

Usage: python checks.py BACKEND VIEW PROGRAM...
"""

from __future__ import annotations

import json
import sys
import traceback
from importlib import import_module
from types import SimpleNamespace


def main() -> None:
    backend, view, *names = sys.argv[1:]
    import cuda_morph

    activation = cuda_morph.activate(backend, view=view)
    world = SimpleNamespace(backend=backend, view=view, activation=activation, device="cuda")
    for program in map(import_module, names):
        for name, check in list(vars(program).items()):
            if name.startswith("check_"):
                row = {"check": f"{program.__name__}.{name}", "error": outcome(check, world)}
                sys.stdout.write("CHECK " + json.dumps(row) + "\n")
                sys.stdout.flush()


def outcome(check, world) -> str:
    """Returns an empty string, or what is wrong."""
    import torch

    torch.manual_seed(0)
    try:
        check(world)
    except BaseException:
        return traceback.format_exc()
    return ""


if __name__ == "__main__":
    main()
