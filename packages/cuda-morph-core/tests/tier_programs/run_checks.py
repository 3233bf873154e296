"""Runs all checks of some programs in this process and writes one JSON line per check.

Usage: python run_checks.py '{"tier": ..., "view": ..., "backend": ..., "programs": [...],
"activate": true, "report": path}'
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path


def main() -> None:
    cell = json.loads(sys.argv[1])
    # Imported before activation, as a user's modules are: their names from torch are early ones.
    programs = [import_module(name) for name in cell["programs"]]
    import torch
    from world import World

    import cuda_morph

    activation = None
    if cell["activate"]:
        activation = cuda_morph.activate(cell["backend"], view=cell["view"])
    world = World(cell["tier"], cell["view"], cell["backend"], activation)
    with Path(cell["report"]).open("w", buffering=1) as report:
        for program in programs:
            for name, check in list(vars(program).items()):
                if name.startswith("check_") and f"{program.__name__}.{name}" in cell["checks"]:
                    torch.manual_seed(0)
                    start = time.process_time()
                    row = {"check": f"{program.__name__}.{name}", "error": outcome(check, world)}
                    row["seconds"] = round(time.process_time() - start, 3)
                    report.write(json.dumps(row) + "\n")


def outcome(check, world) -> str:
    """Returns an empty string, or what is wrong."""
    from world import expects_limit

    limit = expects_limit(check, world)
    try:
        check(world)
    except BaseException:
        if not limit:
            return traceback.format_exc()
        if any(limit in text for text in world.activation.limits):
            return ""
        return f"fails, and no limit says {limit!r}:\n{traceback.format_exc()}"
    return f"passes, although a limit is declared: {limit!r}" if limit else ""


main()
