"""The same CUDA training script on every simulated accelerator: one command each, one table.

``python examples/tour.py`` runs ``cuda-morph run --backend sim:NAME examples/train_char_gpt.py``
for each installed plugin that a device can be simulated for, and on the CPU backend, and compares
the losses. Nothing here ran on a card.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cuda_morph import plugins

SCRIPT = Path(__file__).with_name("train_char_gpt.py")
SIZE = [
    "--batch-size=8", "--block-size=32", "--n-layer=2", "--n-embd=64", "--workers=0", "--sample=1",
]  # fmt: skip
TOLERANCE = 0.05
"""Largest difference of the final losses: kernels and half precision round differently."""


def backends() -> list[str]:
    """Returns what to visit: the plain simulation first, then each vendor's, then the CPU."""
    posing = [name for name, _ in plugins.collect("cuda_morph_personality")]
    return ["sim", *(f"sim:{name}" for name in posing), "cpu"]


def visit(backend: str, steps: int, folder: Path) -> dict[str, object]:
    """Runs the script once and returns what it says about itself."""
    command = [sys.executable, "-m", "cuda_morph", "run", "--backend", backend, str(SCRIPT)]
    out = folder / backend.replace(":", "-")
    started = time.perf_counter()
    done = subprocess.run(
        [*command, f"--steps={steps}", f"--out={out}", *SIZE],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    row: dict[str, object] = {"backend": backend, "seconds": time.perf_counter() - started}
    row["gpu"] = next((line for line in done.stdout.splitlines() if line.startswith("GPU 0")), "?")
    if done.returncode:
        row["problem"] = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return row
    losses = json.loads((out / "metrics.json").read_text())["losses"]
    return {**row, "first": losses[0], "last": losses[-1]}


def main() -> int:
    """Visits all and prints the table; exit code 1 when one failed or differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--only", nargs="+", metavar="BACKEND", help="instead of all")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cuda-morph-tour-") as folder:
        rows = []
        for backend in arguments.only or backends():
            print(f"$ cuda-morph run --backend {backend} {SCRIPT.name}", flush=True)
            rows.append(visit(backend, arguments.steps, Path(folder)))
    print(f"\n{'backend':<16}{'first loss':>12}{'last loss':>12}{'seconds':>10}  device")
    reference = next((row["last"] for row in rows if "last" in row), None)
    good = True
    for row in rows:
        if "problem" in row:
            good = False
            print(f"{row['backend']:<16}  failed: {row['problem']}")
            continue
        same = abs(row["last"] - reference) <= TOLERANCE
        good = good and same
        mark = "" if same else f"  differs by more than {TOLERANCE}"
        print(
            f"{row['backend']:<16}{row['first']:>12.4f}{row['last']:>12.4f}"
            f"{row['seconds']:>10.1f}  {row['gpu']}{mark}"
        )
    print("\nNo card was used: devices are simulated." if good else "\nNot all losses agree.")
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
