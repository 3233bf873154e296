"""Runs the checks of programs under one backend, view and tier; prints one JSON line for each.

Usage: python checks.py BACKEND VIEW PROGRAM..., with the tier in CUDA_MORPH_TIER.
"""

from __future__ import annotations

import json
import sys
import traceback
from importlib import import_module
from types import SimpleNamespace


def main() -> None:
    backend, view, *names = sys.argv[1:]
    # Imported before activation, as a user's modules are.
    programs = [import_module(name) for name in names]

    import cuda_morph

    world = SimpleNamespace(
        backend=backend, view=view, activation=cuda_morph.activate(backend, view=view)
    )
    for program in programs:
        for name, check in list(vars(program).items()):
            if name.startswith("check_"):
                row = {"check": f"{program.__name__}.{name}", "error": outcome(check, world)}
                sys.stdout.write("CHECK " + json.dumps(row) + "\n")
                sys.stdout.flush()


def outcome(check, world) -> str:
    """Returns an empty string, or what is wrong."""
    import torch

    torch.manual_seed(0)
    torch._dynamo.reset()
    try:
        check(world)
    except BaseException:
        return traceback.format_exc()
    return ""


if __name__ == "__main__":
    main()
