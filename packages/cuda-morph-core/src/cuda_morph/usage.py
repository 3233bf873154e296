"""Counts of the CUDA calls that were answered, kept only while asked for."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_morph.interception import Target
    from cuda_morph.patching import Journal

DEVICE_STRINGS = "device strings"
"""Name under which redirected strings such as ``"cuda:0"`` are counted, on the compiled tier.
A repeated ``torch.device("cuda")`` is answered from a table and counts once at most."""


class UsageCounter:
    """Counts calls by CUDA name; thread-safe."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._strings: Callable[[], int] = lambda: 0

    def wrap(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns `function`, wrapped to be counted under `name`; compiled code is not counted."""
        from torch.compiler import is_dynamo_compiling

        def counted(*args: Any, **kwargs: Any) -> Any:
            if not is_dynamo_compiling():  # Dynamo follows our code and refuses the lock
                self.add(name)
            return function(*args, **kwargs)

        return counted

    def add(self, name: str, calls: int = 1) -> None:
        """Adds calls to a name."""
        with self._lock:
            self._counts[name] += calls

    def watch_spellings(self, journal: Journal, target: Target, tier: str) -> None:
        """Counts what reaches the accelerator without a function of ``torch.cuda``.

        Args:
            journal: Receives the changes.
            target: The accelerator.
            tier: Name of the tier in force; the compiled one counts device strings by itself.
        """
        import torch

        from cuda_morph.interception.tensor_attributes import traceable_cuda

        moved = traceable_cuda(target, self.wrap("torch.Tensor.cuda", torch.Tensor.cuda))
        journal.set_attribute(torch.Tensor, "cuda", moved)

        def module_cuda(module: Any, device: Any = None) -> Any:
            return original(module, device)

        counted = self.wrap("torch.nn.Module.cuda", module_cuda)
        original = journal.redirect_function(torch.nn.Module.cuda, counted)
        if tier == "T0":
            from cuda_morph_native import native

            before = native.redirected_string_count()
            self._strings = lambda: native.redirected_string_count() - before

    def counts(self) -> dict[str, int]:
        """Returns calls by name, most frequent first."""
        with self._lock:
            found = self._counts.copy()
        if self._strings():
            found[DEVICE_STRINGS] = self._strings()
        return dict(found.most_common())
