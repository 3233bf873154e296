"""Stubs: CUDA calls that are accepted without effect, and say so once."""

from __future__ import annotations

import threading
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_PUBLIC_NAMES = {
    "_cuda_cudaCachingAllocator_enable": "torch.cuda.caching_allocator_enable",
    "_cuda_memorySnapshot": "torch.cuda.memory_snapshot",
    "_cuda_record_memory_history": "torch.cuda.memory._record_memory_history",
    "_cuda_record_memory_history_legacy": "torch.cuda.memory._record_memory_history",
    "_cuda_record_untuned_enable": "torch.cuda.tunable.record_untuned_enable",
    "_cuda_set_cudnn_benchmark_limit": "torch.backends.cudnn.benchmark_limit",
    "_cuda_set_sync_debug_mode": "torch.cuda.set_sync_debug_mode",
    "_cuda_setCublasLtWorkspaceSize": "torch.backends.cuda.cublaslt_workspace_size",
    "_cuda_setCublasWorkspaceSize": "torch.backends.cuda.cublas_workspace_size",
    "_cuda_setMemoryFraction": "torch.cuda.set_per_process_memory_fraction",
}
_TUNABLE = "_cuda_tunableop_"


class StubWarning(UserWarning):
    """A CUDA call was accepted without doing what its name says."""


class Notices:
    """Remembers which stubs have spoken, so that each speaks once per activation."""

    def __init__(self) -> None:
        self._given: set[str] = set()
        self._lock = threading.Lock()

    def give(self, name: str, note: str) -> None:
        """Warns that `name` has no effect, unless it was said before.

        Args:
            name: The CUDA name.
            note: What it does not do.
        """
        with self._lock:
            if name in self._given:
                return
            self._given.add(name)
        warnings.warn(f"cuda-morph: {name} is only a stub. {note}", StubWarning, stacklevel=4)


def public_name(c_name: str) -> str:
    """Returns the name under which users know a function of ``torch._C``."""
    if c_name.startswith(_TUNABLE):
        return f"torch.cuda.tunable.{c_name[len(_TUNABLE) :]}"
    return _PUBLIC_NAMES.get(c_name, f"torch._C.{c_name}")


def stub(
    name: str, note: str, function: Callable[..., Any], notices: Notices
) -> Callable[..., Any]:
    """Returns `function`, preceded by a notice at its first call.

    Args:
        name: The CUDA name that the notice gives.
        note: What the call does not do.
        function: Remembers a setting, or returns a neutral value.
        notices: Which stubs have spoken.
    """

    def stubbed(*args: Any, **kwargs: Any) -> Any:
        notices.give(name, note)
        return function(*args, **kwargs)

    return stubbed
