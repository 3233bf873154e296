"""Measures the overhead budget of cuda-morph and holds it against its limits.

    python bench/run.py                     everything, about ten minutes
    python bench/run.py --quick             the fastest tier, fewer samples: half a minute
    python bench/run.py --family sim        one family; may be repeated
    python bench/run.py --json FILE         also writes every number

Exit code: 0 all budgets kept, 1 one is missed (not with --no-gate), 2 it could not be measured.
docs/benchmarks.md says what is measured and how.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import activation
import calls
import command_line
import fresh
import table
import toggles
from rows import FULL, QUICK

if TYPE_CHECKING:
    from collections.abc import Callable

    from rows import Effort, Row

FAMILIES: dict[str, Callable[[Effort], list[Row]]] = {
    "bystanders": calls.bystanders,
    "redirected": calls.redirected,
    "activation": activation.measure,
    "toggles": toggles.measure,
    "command-line": command_line.measure,
    "sim": calls.sim,
}
_PROBE = """
import json, os, cuda_morph, torch
from cuda_morph.errors import MorphError
backends, tiers = [], []
for backend in ("cpu", "sim"):
    try:
        cuda_morph.activate(backend, view="cuda")
    except MorphError:
        continue
    cuda_morph.deactivate()
    backends.append(backend)
for tier in ("T0", "T1"):
    os.environ["CUDA_MORPH_TIER"] = tier
    try:
        cuda_morph.activate("cpu", view="cuda")
    except MorphError:
        continue
    cuda_morph.deactivate()
    tiers.append(tier)
print(json.dumps({"backends": backends, "tiers": tiers, "torch": torch.__version__}))
"""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="the fastest tier and fewer samples: half a minute"
    )
    parser.add_argument("--family", action="append", choices=FAMILIES, help="measure only this one")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every number to FILE")
    parser.add_argument("--no-gate", action="store_true", help="report only, always exit 0")
    return parser.parse_args()


def _here() -> tuple[dict[str, object], tuple[str, ...], tuple[str, ...]]:
    """Returns facts on this machine, and the backends and tiers that can be used on it."""
    probe = fresh.run("-c", _PROBE)
    if probe.returncode != 0:
        raise RuntimeError(f"cuda-morph cannot be activated here:\n{probe.stderr[-3000:]}")
    found = json.loads(probe.stdout.splitlines()[-1])
    facts = {
        "python": platform.python_version(),
        "torch": found["torch"],
        "machine": platform.machine(),
        "system": platform.system(),
        "cores": os.cpu_count(),
        "load": [round(value, 2) for value in os.getloadavg()],
    }
    return facts, tuple(found["backends"]), tuple(found["tiers"])


def main() -> int:
    """Runs the families and reports."""
    options = _arguments()
    start = time.perf_counter()
    try:
        facts, backends, tiers = _here()
        if options.quick:
            effort = replace(QUICK, backends=backends, tiers=tiers[:1])
        else:
            effort = replace(FULL, backends=backends, tiers=tiers)
        rows = []
        for name in options.family or FAMILIES:
            print(f"measuring {name} ...", file=sys.stderr, flush=True)
            rows += FAMILIES[name](effort)
    except RuntimeError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    seconds = time.perf_counter() - start
    table.show(rows)
    missed = [row for row in rows if not row.passes]
    print(f"\n{len(rows)} rows in {seconds:.0f} s, {len(missed)} over budget. {facts}")
    for row in missed:
        print(f"over budget: {row.family}: {row.name} ({row.where}). {row.note}".rstrip())
    if options.json:
        report = {"facts": facts, "seconds": seconds, "rows": [row.as_dict() for row in rows]}
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 1 if missed and not options.no_gate else 0


if __name__ == "__main__":
    sys.exit(main())
