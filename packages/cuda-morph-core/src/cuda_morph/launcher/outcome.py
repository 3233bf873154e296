"""How a run ended: what its report and its closing table are made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cuda_morph.launcher.program import Program
    from cuda_morph.manifest import Activation
    from cuda_morph.trace.report import TraceReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a run ended."""

    program: Program
    exit_code: int
    seconds: float
    activation: Activation | None
    """``None``: the program never imported torch, or the activation failed."""
    error: BaseException | None = None
    trace: TraceReport | None = None
    """What was recorded; ``None`` without ``--trace``."""
    children_inherit: bool | None = None
    """Whether PyTorch would activate cuda-morph in child processes; ``None`` without torch."""
