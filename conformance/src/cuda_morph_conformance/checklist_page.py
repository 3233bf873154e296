"""The checklist as a document; run as a module it prints what docs/checklist.md holds."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from cuda_morph_conformance.checks import load_all
from cuda_morph_conformance.outcomes import is_mandatory
from cuda_morph_conformance.registry import CHECKS
from cuda_morph_conformance.vocabulary import AREAS, CHECKLIST, Level

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cuda_morph_conformance.registry import Check

_LEVELS = {
    Level.LOADS: "Found, isolated, typed and reversible. No device is needed.",
    Level.RUNS: "Programs that use one device run unchanged.",
    Level.TRAINS: "Training gives what the CPU gives, within the checklist's tolerances.",
    Level.SCALES: "Collectives and data parallel training over several devices.",
    Level.ACCELERATES: "Fused attention, compilation and graphs are really used.",
}


def render_document() -> str:
    """Returns the whole checklist as Markdown."""
    load_all()
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    results = sum(len(check.views) or 1 for check in CHECKS.values())
    yield f"# Checklist {CHECKLIST}"
    yield ""
    yield "<!-- Generated: python -m cuda_morph_conformance.checklist_page > docs/checklist.md -->"
    yield ""
    yield (
        f"{len(CHECKS)} checks, {results} results: a check is made in each view given with it. "
        "A check in **bold** is mandatory: a plugin cannot decline it and reach the level. What to "
        "do when one fails is printed with the failure. See [certify](certify.md)."
    )
    by_level = itertools.groupby(CHECKS.values(), key=lambda check: check.level)
    for level, checks in by_level:
        yield from ("", f"## {level.value}", "", _LEVELS[level])
        for area, own in itertools.groupby(checks, key=lambda check: check.area):
            yield from ("", f"### {AREAS[area]} ({level.value})", "")
            yield from ("| check | sentence | needs | views |", "|---|---|---|---|")
            yield from map(_row, own)
    yield ""


def _row(check: Check) -> str:
    name = f"**{check.id}**" if is_mandatory(check.requires) else check.id
    needs = [f"`{item}`" for item in check.requires]
    if check.devices > 1:
        needs.append(f"{check.devices} devices")
    sentence = check.must.replace("``", "`").replace("|", "\\|")
    return f"| {name} | {sentence} | {', '.join(needs)} | {', '.join(check.views) or 'once'} |"


if __name__ == "__main__":
    print(render_document(), end="")  # noqa: T201 - the document goes to standard output
