"""A trace as data: what JSON, the page and the terminal show."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from cuda_morph import get_version
from cuda_morph.torch_facts import torch_version
from cuda_morph.trace.recorder import CALL

if TYPE_CHECKING:
    from cuda_morph.manifest import Activation
    from cuda_morph.trace.recorder import Entry, Recorder

VERSION = 1
"""Version of the fields; a new field does not raise it."""

SITES_SHOWN = 10
"""Call sites per name, those with most calls first."""

_MICROSECONDS = 6
_TIMES = (
    "Times are wall time on the host and include the trace's own cost; an asynchronous device may "
    "finish its work later."
)
_UNSEEN = (
    "Child processes, compiled kernels, and what libraries do without PyTorch's dispatcher are not "
    "in the trace."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteLine:
    """One place of the program that a name was called from."""

    file: str
    line: int
    calls: int
    seconds: float

    @property
    def text(self) -> str:
        """The place as compilers write it."""
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceLine:
    """One CUDA name or operator."""

    name: str
    treatment: str
    """What was done with a CUDA name; whose kernel an operator used."""
    calls: int
    raised: int
    """How many of the calls ended with an exception."""
    seconds: float
    sites: tuple[SiteLine, ...]
    other_sites: int
    """How many more places there were."""

    def as_dict(self, label: str) -> dict[str, Any]:
        """Returns the line in JSON-ready form, with `treatment` under the name `label`."""
        return {
            "name": self.name,
            label: self.treatment,
            "calls": self.calls,
            "raised": self.raised,
            "seconds": round(self.seconds, _MICROSECONDS),
            "sites": [
                {
                    "file": site.file,
                    "line": site.line,
                    "calls": site.calls,
                    "seconds": round(site.seconds, _MICROSECONDS),
                }
                for site in self.sites
            ],
            "other_sites": self.other_sites,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceReport:
    """What a trace recorded."""

    backend: str
    display_name: str
    device_type: str
    simulated: bool
    view: str
    tier: str
    device_strings: int | None
    """Device strings that were redirected; ``None`` where the tier does not count them."""
    calls: tuple[TraceLine, ...]
    operators: tuple[TraceLine, ...]

    def totals(self, lines: tuple[TraceLine, ...]) -> dict[str, int]:
        """Returns calls by treatment, or by origin of the kernel."""
        totals: dict[str, int] = {}
        for line in lines:
            totals[line.treatment] = totals.get(line.treatment, 0) + line.calls
        return totals

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know to judge the figures, one sentence each."""
        kernels = []
        if self.simulated:
            kernels.append(
                "Simulated: no accelerator took part. Every kernel of the simulator, its own too, "
                "runs on the CPU by design, so the times say nothing about hardware."
            )
        elif self.device_type == "cpu":
            kernels.append("No accelerator took part: every kernel ran on the CPU.")
        return (
            *kernels,
            _TIMES,
            _UNSEEN,
        )

    def as_dict(self) -> dict[str, Any]:
        """Returns the trace in JSON-ready form."""
        return {
            "version": VERSION,
            "kind": "cuda-morph trace",
            "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "cuda_morph": get_version(),
            "torch": torch_version(),
            "backend": self.backend,
            "display_name": self.display_name,
            "device_type": self.device_type,
            "simulated": self.simulated,
            "view": self.view,
            "tier": self.tier,
            "device_strings": self.device_strings,
            "totals": {
                "cuda_calls": self.totals(self.calls),
                "operators": self.totals(self.operators),
            },
            "cuda_calls": [line.as_dict("treatment") for line in self.calls],
            "operators": [line.as_dict("kernel") for line in self.operators],
            "notes": list(self.notes),
        }

    def as_json(self, **more: Any) -> str:
        """Returns the trace as text; `more` are further fields."""
        return json.dumps({**self.as_dict(), **more}, indent=2) + "\n"

    def as_html(self, title: str = "", facts: tuple[tuple[str, str], ...] = ()) -> str:
        """Returns one page that needs nothing else.

        Args:
            title: What was traced.
            facts: Further labelled lines for the head of the page.
        """
        from cuda_morph.trace.page import render

        return render(self, title, facts)


def build(recorder: Recorder, activation: Activation) -> TraceReport:
    """Returns what was recorded so far.

    Args:
        recorder: What collected it.
        activation: The activation that was traced.
    """
    calls, operators = [], []
    for (kind, name), entry in recorder.merged().items():
        if kind == CALL:
            calls.append(_line(name, recorder.treatment(name).value, entry))
        else:
            operators.append(_line(name, kind, entry))
    backend = activation.backend
    return TraceReport(
        backend=backend.name,
        display_name=backend.display_name,
        device_type=backend.device_type,
        simulated=backend.simulated,
        view=activation.view,
        tier=activation.tier,
        device_strings=recorder.device_strings() if recorder.device_strings else None,
        calls=tuple(sorted(calls, key=_by_calls)),
        operators=tuple(sorted(operators, key=_by_time)),
    )


def _by_calls(line: TraceLine) -> tuple[int, str]:
    return -line.calls, line.name


def _by_time(line: TraceLine) -> tuple[float, str]:
    return -line.seconds, line.name


def _line(name: str, treatment: str, entry: Entry) -> TraceLine:
    sites = sorted(
        (
            SiteLine(file=file, line=line, calls=int(calls), seconds=seconds)
            for (file, line), (calls, seconds) in entry.sites.items()
        ),
        key=lambda site: -site.calls,
    )
    return TraceLine(
        name=name,
        treatment=treatment,
        calls=entry.calls,
        raised=entry.raised,
        seconds=entry.seconds,
        sites=tuple(sites[:SITES_SHOWN]),
        other_sites=max(0, len(sites) - SITES_SHOWN),
    )
