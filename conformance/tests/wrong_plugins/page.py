"""Renders what was found as a page of the documentation."""

from __future__ import annotations

from typing import Any

from examining import CONTROL, failed_checks, is_caught
from fault import FAULTS

_HEAD = """# Kill rate of the checklist

Each plugin below is right but for one thing, over the simulated device, and claims to do
everything that the device does. The checklist kills it when exactly the checks that are meant for
that thing fail, in whichever view, and no other check of the whole list does.

{summary}

Written by `nox -s wrong-plugins`; the plugins are in `conformance/tests/wrong_plugins/`.

| plugin | what it does wrong | must fail | failed | killed |
|---|---|---|---|---|
"""


def render(found: dict[str, Any]) -> str:
    """Return the page, in Markdown.

    Args:
        found: Results by fault, with those of the control.
    """
    control = found[CONTROL]
    rows, killed, whole = [], 0, 0
    seen = [name for name in FAULTS if name in found]
    for name, fault in FAULTS.items():
        if name not in found:
            rows.append(f"| `{name}` | {fault.does} | {_ids(fault.caught_by)} | not run | |")
            continue
        failed = failed_checks(found[name], control)
        right = is_caught(name, failed)
        complete = found[name]["complete"]
        killed += right
        whole += complete
        verdict = ("yes" if right else "**no**") + ("" if complete else " (part)")
        rows.append(
            f"| `{name}` | {fault.does} | {_ids(fault.caught_by)} | {_ids(sorted(failed))} "
            f"| {verdict} |"
        )
    return (
        _HEAD.format(summary=_summary(killed, len(seen), whole, control)) + "\n".join(rows) + "\n"
    )


def _ids(names: Any) -> str:
    return ", ".join(names) or "none"


def _summary(killed: int, ran: int, whole: int, control: dict[str, Any]) -> str:
    usual = sorted({row[0] for row in control["failed"]})
    known = f" Without any fault, {', '.join(usual)} fail or are missing here." if usual else ""
    part = (
        f" Of these, {whole} went through the whole checklist; where it says (part), only the"
        " intended checks and their neighbours were run."
        if whole < ran
        else " Each went through the whole checklist, in both views."
    )
    return f"**{killed} of {ran} killed.**{part}{known}"
