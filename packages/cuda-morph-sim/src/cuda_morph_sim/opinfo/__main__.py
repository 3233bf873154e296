"""``python -m cuda_morph_sim.opinfo``: compare every operator with the CPU."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cuda_morph.atomic_file import AtomicFile
from cuda_morph.errors import MorphError
from cuda_morph.verification import database

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison.

    Args:
        arguments: Command-line arguments; ``None`` reads the process's own.

    Returns:
        0 when at least 99 % agree exactly as the list of known misses says, 1 when not, 2 when
        the comparison could not be made.
    """
    parser = argparse.ArgumentParser(prog="python -m cuda_morph_sim.opinfo", description=__doc__)
    parser.add_argument("--subset", type=int, metavar="N", help="compare N entries only")
    parser.add_argument("--match", metavar="TEXT", help="only entries whose name contains TEXT")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the outcome to FILE")
    options = parser.parse_args(arguments)
    try:
        return _compare(options)
    except MorphError as error:
        sys.stderr.write(f"{error}\n")
        return 2


def _compare(options: argparse.Namespace) -> int:
    import torch
    from rich.console import Console
    from rich.progress import Progress

    from cuda_morph_sim.loader import load
    from cuda_morph_sim.opinfo import cases, known_misses, report

    file = None if options.json is None else AtomicFile(options.json)
    module = load()
    chosen = [
        op
        for op in database.select(database.load(), options.subset)
        if options.match is None or options.match in op.formatted_name
    ]
    device = torch.device(module.__name__.removeprefix("torch."), 0)
    console = Console()
    results = []
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("comparing", total=len(chosen))
        for op in chosen:
            progress.update(task, description=op.formatted_name)
            results.append(cases.run_entry(op, device))
            progress.advance(task)
    known = known_misses.read_known_misses()
    verdict = known_misses.judge(results, known)
    outcome = report.as_dict(results, known, verdict)
    if file is not None:
        file.write(json.dumps(outcome, indent=2) + "\n")
    report.print_report(console, outcome)
    enough = outcome["percent"] >= report.REQUIRED_PERCENT
    return 0 if enough and verdict.clean else 1


if __name__ == "__main__":
    sys.exit(main())
