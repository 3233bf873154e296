"""Runs the checklist on every faulty plugin, and writes down which checks failed.

Usage: python kill_rate.py RESULTS.json [--only FAULT]... [--checks AREA_OR_ID,...] [--sample N]
                           [--again] [--page PAGE.md]

Results are added to the file after each plugin, and what it holds is not run again. The exit code
is 1 if a fault is not caught by exactly its checks.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from examining import CONTROL, examine, failed_checks, is_caught, neighbours, prepare
from fault import FAULTS
from page import render

from cuda_morph_conformance.checks import load_all
from cuda_morph_conformance.registry import CHECKS
from cuda_morph_conformance.vocabulary import VIEWS


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("results", type=Path)
    parser.add_argument("--only", action="append", default=[], metavar="FAULT")
    parser.add_argument("--checks", default="", help="ids and areas; by default all")
    parser.add_argument(
        "--sample", type=int, help="the intended checks and N of their area, in one view"
    )
    parser.add_argument("--again", action="store_true", help="run what the file has already")
    parser.add_argument("--page", type=Path, help="write the table")
    options = parser.parse_args()
    load_all()
    names = options.only or [CONTROL, *FAULTS]
    found = json.loads(options.results.read_text()) if options.results.is_file() else {}
    due = [name for name in names if options.again or name not in found]
    if due:
        prepare()
    for name in due:
        views = (None, "cuda") if options.sample is not None else (None, *VIEWS)
        found[name] = examine(name, _checks(name, names, options), views)
        options.results.write_text(json.dumps(found, indent=1))
        _tell(name, found)
    if options.page:
        options.page.write_text(render(found))
    control = found.get(CONTROL, {"failed": ()})
    return 0 if all(is_caught(one, failed_checks(found[one], control)) for one in names) else 1


def _checks(name: str, names: list[str], options: argparse.Namespace) -> set[str]:
    if options.sample is not None:
        faults = [one for one in names if one != CONTROL] if name == CONTROL else [name]
        # The control shows that what must fail passes without the faults.
        count = 0 if name == CONTROL else options.sample
        return set().union(*(neighbours(one, count) for one in faults))
    wanted = {item for item in options.checks.split(",") if item}
    return {one.id for one in CHECKS.values() if wanted & {one.id, one.area}}


def _tell(name: str, found: dict[str, Any]) -> None:
    failed = failed_checks(found[name], found.get(CONTROL, {"failed": ()}))
    word = "ok   " if is_caught(name, failed) else "WRONG"
    print(word, name, found[name]["seconds"], "s", flush=True)
    expected = set() if name == CONTROL else set(FAULTS[name].caught_by)
    for check, view, outcome, message in found[name]["failed"]:
        if check in failed:
            print("     ", "+" if check in expected else "!", check, view, outcome, message[:160])
    for check in sorted(expected - failed):
        print("      - not failed:", check, flush=True)


if __name__ == "__main__":
    sys.exit(main())
