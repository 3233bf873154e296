"""Which operators of a model run on kernels of the backend, and which fall back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuda_morph import get_version, report_page
from cuda_morph.frozen_record import frozen_record
from cuda_morph.torch_facts import torch_version
from cuda_morph.trace.kernel_watch import watched_kernels

if TYPE_CHECKING:
    from cuda_morph.chosen_device import ChosenDevice
    from cuda_morph.model_factory import ModelCall

COLUMNS = ("operator", "kernel", "calls", "milliseconds")

_KINDS = {"own": "native", "composed": "composed", "fallback": "fallback", "none": "none"}
_ORDER = ("none", "fallback", "native", "composed")
_KERNELS = (
    "native: the backend has a kernel; fallback: it has none and its fallback runs the operator, "
    "as a rule on the CPU; composed: made of other operators, listed by themselves; none: raised."
)
_TIMES = (
    "Times are wall time on the host and include the cost of watching; operators of compiled "
    "kernels and of tensors that stay on the CPU are not seen."
)
_SIMULATED = (
    "Simulated: no accelerator took part. Kernels of the simulator run on the CPU by design; "
    "which operators a real device has may differ."
)


@frozen_record
class AuditRow:
    """One operator of the model."""

    name: str
    kernel: str
    calls: int
    seconds: float

    def texts(self) -> tuple[str, ...]:
        """Returns the line of the table."""
        return (self.name, self.kernel, str(self.calls), f"{self.seconds * 1e3:.3f}")


@frozen_record
class AuditReport:
    """What ran, on whose kernels."""

    target: str
    device: ChosenDevice
    backward: bool
    rows: tuple[AuditRow, ...]

    @property
    def ok(self) -> bool:
        """Whether something ran on the device, and all of it natively."""
        kinds = {row.kernel for row in self.rows}
        return "native" in kinds and not kinds & {"fallback", "none"}

    def totals(self) -> dict[str, int]:
        """Returns how many operators there are of each kind."""
        return {kind: sum(row.kernel == kind for row in self.rows) for kind in _ORDER}

    def summary(self) -> str:
        """Returns the totals in one line."""
        if not self.rows:
            return "No operator ran on the device."
        said = ", ".join(f"{count} {kind}" for kind, count in self.totals().items() if count)
        return f"{len(self.rows)} operators: {said}."

    def notes(self) -> tuple[str, ...]:
        """Returns what a reader must know, a sentence each."""
        return (*((_SIMULATED,) if self.device.simulated else ()), _KERNELS, _TIMES)

    def as_dict(self) -> dict[str, Any]:
        """Returns the audit in JSON-ready form."""
        return {
            "version": 1,
            "kind": "cuda-morph op audit",
            "cuda_morph": get_version(),
            "torch": torch_version(),
            **self.device.as_dict(),
            "target": self.target,
            "backward": self.backward,
            "ok": self.ok,
            "totals": self.totals(),
            "notes": list(self.notes()),
            "operators": [
                {"name": row.name, "kernel": row.kernel, "calls": row.calls, "seconds": row.seconds}
                for row in self.rows
            ],
        }

    def page(self) -> str:
        """Returns the HTML page."""
        facts = (
            ("device", self.device.label),
            ("backend", self.device.backend),
            ("passes", "forward and backward" if self.backward else "forward"),
            ("PyTorch", torch_version() or "unknown"),
            ("operators", self.summary()),
        )
        rows = tuple(row.texts() for row in self.rows)
        return report_page.render(
            f"cuda-morph op audit: {self.target}",
            facts,
            (report_page.PageTable(title="Operators", columns=COLUMNS, rows=rows),),
            notes=self.notes(),
            simulated=self.device.simulated,
        )


def audit(target: str, call: ModelCall, device: ChosenDevice, *, backward: bool) -> AuditReport:
    """Runs a model once and tells whose kernels it used.

    Args:
        target: Name of the model, for the report.
        call: The model on the device.
        device: The device.
        backward: Also run the backward pass.

    Returns:
        The operators: those without kernel first, then by time.

    Raises:
        MorphError: The model failed.
    """
    with watched_kernels(device.device) as watch:
        if backward:
            call.backward()
        else:
            call()
    rows = [
        AuditRow(
            name=name, kernel=_KINDS[kind], calls=watch.calls[name], seconds=watch.seconds[name]
        )
        for name, kind in watch.origins.items()
    ]
    rows.sort(key=lambda row: (_ORDER.index(row.kernel), -row.seconds, row.name))
    return AuditReport(target=target, device=device, backward=backward, rows=tuple(rows))
