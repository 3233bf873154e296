"""What becomes of CUDA names that cannot be given: stubs and refusals.

A stub is accepted without effect and says so once. A refused function or class raises with a reason
and a replacement; the object stays PyTorch's own, so annotations, ``isinstance`` and subclasses
keep working, and what is refused is the call.
"""

from __future__ import annotations

import sys
import threading
import types
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cuda_morph.errors import RefusedError

if TYPE_CHECKING:
    from cuda_morph.api_table import ApiRow
    from cuda_morph.device.layer import LayerContext
    from cuda_morph.records import Backend

Answer = Callable[..., Any]

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
_OURS = ("cuda_morph.", "torch.cuda", "torch.backends")
"""Modules between a stub and the line of the program that called it."""


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
        warnings.warn(
            f"cuda-morph: {name} is only a stub. {note}", StubWarning, stacklevel=_caller_level()
        )


def _caller_level() -> int:
    """Returns the ``stacklevel`` of the program's line, for a warning of our caller.

    Between the two are frames of ours, more of them in a trace, and of what was called.
    """
    frame, level = sys._getframe(1), 0
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_OURS):
        frame, level = frame.f_back, level + 1
    return level + 1


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


def refusal(name: str, reason: str, replacement: str, backend: Backend) -> Answer:
    """Returns a function that raises `RefusedError` whenever it is called.

    Args:
        name: The CUDA name that is refused.
        reason: Why there is no honest answer.
        replacement: What to use instead.
        backend: The active backend, named in the message.
    """

    def refuse(*_args: Any, **_kwargs: Any) -> Any:
        raise RefusedError(
            f"{name} is refused on backend {backend.name!r}. {reason}",
            hint=f"Use {replacement} instead." if replacement else "",
        )

    return refuse


def refuse_class(context: LayerContext, cls: type, row: ApiRow) -> None:
    """Makes constructing `cls`, and calling its static methods, raise `RefusedError`.

    Args:
        context: Where changes are recorded.
        cls: A class of PyTorch.
        row: The row that says why.
    """
    journal = context.journal
    refuse = context.count_calls(
        row.name, refusal(row.name, row.note, row.replacement, context.backend)
    )
    own: dict[str, Any] = dict(vars(cls))
    constructor = own.get("__new__")
    inherited: Any = cls.__new__
    if isinstance(constructor, staticmethod):
        journal.redirect_function(_plain(constructor), refuse)
    elif inherited is not object.__new__:
        journal.set_attribute(cls, "__new__", staticmethod(refuse))
    elif isinstance(own.get("__init__"), types.FunctionType):
        journal.redirect_function(own["__init__"], refuse)
    else:
        journal.set_attribute(cls, "__init__", refuse)
    for value in own.values():
        if isinstance(value, staticmethod) and value is not constructor:
            journal.redirect_function(_plain(value), refuse)
    finaliser = own.get("__del__")
    if isinstance(finaliser, types.FunctionType):
        # An instance whose constructor was refused has none of what the finaliser frees.
        journal.redirect_function(finaliser, _nothing)


def _plain(method: Any) -> types.FunctionType:
    function: types.FunctionType = method.__func__
    return function


def _nothing(*_args: Any) -> None:
    """Frees nothing."""


def refused_class(context: LayerContext, row: ApiRow) -> type:
    """Returns a class that takes the place of one of ``torch._C`` and cannot be constructed."""
    refuse = context.count_calls(
        row.name, refusal(row.name, row.note, row.replacement, context.backend)
    )
    return type(row.name.rpartition(".")[2], (), {"__new__": staticmethod(refuse)})
