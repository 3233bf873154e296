"""A benchmark's outcome as table, JSON, CSV and page; a number is there only if it was measured."""

from __future__ import annotations

import csv
import io
import platform
from dataclasses import field
from typing import TYPE_CHECKING, Any

from cuda_morph import get_version, report_page
from cuda_morph.benchmarks import charts
from cuda_morph.frozen_record import frozen_record
from cuda_morph.torch_facts import torch_version

if TYPE_CHECKING:
    from cuda_morph.chosen_device import ChosenDevice

_SIMULATED = (
    "Simulated: no accelerator took part; these are times of this machine's CPU and say nothing "
    "about hardware."
)


@frozen_record
class BenchRow:
    """One measurement."""

    name: str
    fields: dict[str, Any]
    """Figures by name, the unit at the name's end; ``None`` where there is none."""
    status: str = "measured"
    """``measured``, ``unsupported`` or ``failed``."""
    reason: str = ""
    bar: tuple[float, float, float] | None = None
    """For the plot: value, and the ends of its spread."""


@frozen_record
class BenchReport:
    """What was measured."""

    kind: str
    subject: str
    device: ChosenDevice
    rows: tuple[BenchRow, ...]
    settings: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    bar_title: str = ""
    seconds: tuple[float, ...] = ()
    """Every single time, where there are few."""

    @property
    def ok(self) -> bool:
        """Whether something was measured and nothing failed."""
        states = {row.status for row in self.rows}
        return "measured" in states and "failed" not in states

    def columns(self) -> tuple[str, ...]:
        """Returns the names of the figures; a status only where something was not measured."""
        fields = tuple(self.rows[0].fields) if self.rows else ()
        lead = () if self.kind == "ops" else ("name",)
        return (*lead, *fields, *(("status",) if self._any_status() else ()))

    def table(self) -> list[tuple[str, ...]]:
        """Returns the lines of the table."""
        return [self._texts(row) for row in self.rows]

    def _any_status(self) -> bool:
        return any(row.status != "measured" for row in self.rows)

    def _texts(self, row: BenchRow) -> tuple[str, ...]:
        lead = () if self.kind == "ops" else (row.name,)
        state = f"{row.status}: {row.reason}" if row.reason else row.status
        status = (state,) if self._any_status() else ()
        return (*lead, *(_text(value) for value in row.fields.values()), *status)

    def all_notes(self) -> tuple[str, ...]:
        """Returns what a reader must know, a sentence each."""
        return (*((_SIMULATED,) if self.device.simulated else ()), *self.notes)

    def as_dict(self) -> dict[str, Any]:
        """Returns the outcome in JSON-ready form."""
        return {
            "version": 1,
            "kind": f"cuda-morph bench {self.kind}",
            "cuda_morph": get_version(),
            "torch": torch_version(),
            "machine": f"{platform.system()} {platform.machine()}",
            "subject": self.subject,
            **self.device.as_dict(),
            "settings": self.settings,
            "notes": list(self.all_notes()),
            "rows": [
                {"name": row.name, "status": row.status, "reason": row.reason, **row.fields}
                for row in self.rows
            ],
            **({"seconds": list(self.seconds)} if self.seconds else {}),
        }

    def csv_text(self) -> str:
        """Returns the rows as CSV, with device and simulation in every row."""
        text = io.StringIO()
        names = ["device", "simulated", "name", *(self.rows[0].fields if self.rows else ())]
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*names, "status", "reason"])
        for row in self.rows:
            lead = [self.device.device, self.device.simulated, row.name]
            writer.writerow([*lead, *row.fields.values(), row.status, row.reason])
        return text.getvalue()

    def page(self) -> str:
        """Returns the HTML page."""
        facts = (
            ("subject", self.subject),
            ("device", self.device.label),
            ("backend", self.device.backend),
            ("PyTorch", torch_version() or "unknown"),
            ("machine", f"{platform.system()} {platform.machine()}"),
            *((name, _setting(value)) for name, value in self.settings.items()),
        )
        drawn = [(row.name, *row.bar) for row in self.rows if row.bar is not None]
        table = report_page.PageTable(
            title="Measurements",
            columns=self.columns(),
            rows=tuple(self.table()),
            plot=charts.bars(self.bar_title, drawn),
        )
        return report_page.render(
            f"cuda-morph bench {self.kind}",
            facts,
            (table,),
            notes=self.all_notes(),
            simulated=self.device.simulated,
        )


def _setting(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"  # noqa: PLR2004
    return str(value)
