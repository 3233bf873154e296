"""Telling operators that draw random numbers: devices draw different ones from the same seed."""

from __future__ import annotations

from typing import Any

import torch  # noqa: TID253 - the mode is a class of PyTorch; loaded to run operators only
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: TID253


class RandomWatch(TorchDispatchMode):  # type: ignore[misc] # torch is not there for type checks
    """Notes whether any operator within is marked as seeded by PyTorch."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = False

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Any = None,
    ) -> Any:
        """Runs one operator."""
        if torch.Tag.nondeterministic_seeded in getattr(func, "tags", ()):
            self.seen = True
        return func(*args, **(kwargs or {}))
