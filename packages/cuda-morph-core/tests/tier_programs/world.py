"""What a check is told about the process it runs in, and how it says where it applies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class World:
    """One cell of the matrix: interception tier, view, backend."""

    tier: str
    view: str
    backend: str
    activation: Any = None

    @property
    def device_type(self) -> str:
        """The accelerator's own device type; a backend may be named differently."""
        if self.activation is not None:
            return str(self.activation.backend.device_type)
        return "cpu" if self.backend == "cpu" else "sim"

    @property
    def masked(self) -> bool:
        """Whether devices print as ``cuda``: the CPU keeps its name."""
        return self.view == "cuda" and self.backend != "cpu"

    @property
    def shown(self) -> str:
        """The device type that user code sees."""
        return "cuda" if self.masked else self.device_type

    @property
    def devices(self) -> int:
        return 1 if self.backend == "cpu" else 2

    def text(self, index: int = 0) -> str:
        """How a tensor's device prints; the CPU has no index."""
        return self.shown if self.backend == "cpu" else f"{self.shown}:{index}"

    def device(self, index: int = 0) -> Any:
        """The device without a CUDA string being involved."""
        import torch

        if self.backend == "cpu":
            return torch.device("cpu")
        return torch.empty(0, device=torch.device(self.device_type, index)).device


def only(
    *, tiers: tuple[str, ...] = (), views: tuple[str, ...] = (), backends: tuple[str, ...] = ()
) -> Any:
    """Restricts a check to some cells; read from the source at collection."""
    del tiers, views, backends
    return lambda check: check


def declared_limit(
    text: str, *, tiers: tuple[str, ...] = (), backends: tuple[str, ...] = ()
) -> Any:
    """Says that a check fails in some cells, whose manifest must contain `text` as a limit.

    There the check must really fail: a limit that is none is an error as well.
    """

    def mark(check: Any) -> Any:
        check.declared_limit = (text, tiers, backends)
        return check

    return mark


def expects_limit(check: Any, world: World) -> str:
    """Returns the limit that makes `check` fail in this cell, or an empty string."""
    text, tiers, backends = getattr(check, "declared_limit", ("", (), ()))
    here = (not tiers or world.tier in tiers) and (not backends or world.backend in backends)
    return text if here else ""


def raises(error: type[BaseException], call: Any, *args: Any, **kwargs: Any) -> str:
    """Returns the message of the error that the call must raise."""
    try:
        result = call(*args, **kwargs)
    except error as raised:
        return str(raised)
    raise AssertionError(f"{error.__name__} was expected, the call returned {result!r}")
