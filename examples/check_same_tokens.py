"""Check that inference_transformers.py gives the same tokens on a device as on the CPU.

Runs the program twice: as it stands on the CPU with ``--device cpu``, and unchanged, with its
hard-coded "cuda", under ``cuda-morph run``. Exits 1 and shows the first difference if the tokens
are not the same, or if the second run was on the CPU after all while a device was asked for.

    python examples/check_same_tokens.py --backend sim
    python examples/check_same_tokens.py --backend sim --seeds 0 1 2
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = Path(__file__).parent / "inference_transformers.py"


def run(prefix: list[str], options: list[str], seed: int) -> dict:
    """Run the program and return what it wrote; its own output is shown if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "tokens.json"
        program = [str(PROGRAM), *options, "--seed", str(seed), "--json", str(result)]
        command = [sys.executable, *prefix, *program]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\nended with {done.returncode}:\n{done.stderr}")
        return json.loads(result.read_text(encoding="utf-8"))


def first_difference(expected: list[list[int]], found: list[list[int]]) -> str:
    for row, (left, right) in enumerate(zip(expected, found, strict=True)):
        for place, (a, b) in enumerate(zip(left, right, strict=True)):
            if a != b:
                return f"row {row}, token {place}: {a} on the CPU, {b} on the device"
    return "no difference"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="sim", help="what cuda-morph runs the program on")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    args = parser.parse_args()
    launcher = ["-m", "cuda_morph", "run", "--backend", args.backend]
    for seed in args.seeds:
        on_cpu = run([], ["--device", "cpu"], seed)
        on_device = run(launcher, [], seed)
        if on_cpu["tokens"] != on_device["tokens"]:
            sys.exit(f"seed {seed}: {first_difference(on_cpu['tokens'], on_device['tokens'])}")
        if args.backend != "cpu" and not on_device["device"].startswith("cuda"):
            sys.exit(f"seed {seed}: the program ran on {on_device['device']}, not on cuda")
        count = sum(len(row) for row in on_cpu["tokens"])
        print(f"seed {seed}: the same {count} tokens on cpu and on {on_device['device']}")


if __name__ == "__main__":
    main()
