"""Watching the operators that run on the accelerator, and telling whose kernels they use.

PyTorch's dispatcher gives every operator to a mode on the stack of the calling thread. Autograd
hands the stack of the thread that called ``backward()`` on to its own threads, so a backward pass
is seen too. Our mode runs the operator exactly as it would have run, below autograd, and
notes the time.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded for a trace only, when torch already is
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: TID253

from cuda_morph.trace.function_copy import function_copy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cuda_morph.interception import Target
    from cuda_morph.patching import Journal
    from cuda_morph.trace.recorder import Recorder

OWN = "own"
"""The backend registered a kernel for the operator."""
FALLBACK = "fallback"
"""It did not: the backend's fallback takes the operator, which as a rule runs it on the CPU."""
COMPOSED = "composed"
"""PyTorch builds the operator from others, which are recorded by themselves."""
NO_KERNEL = "none"
"""There is neither kernel nor fallback: the operator raises."""

_NO_DISPATCH = torch._C._disabled_torch_dispatch_impl

_COMPOSITE = (
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
    "CompositeImplicitAutograd",
)


class KernelOrigins:
    """Tells from the dispatcher's tables who answers an operator on one device type.

    Args:
        key: Name of the device type's dispatch key.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        dispatch_key = getattr(torch._C.DispatchKey, key)
        self.keyset = torch._C.DispatchKeySet(dispatch_key)
        self._has_fallback = torch._C._dispatch_has_backend_fallback(dispatch_key)
        self._known: dict[str, str] = {}

    def of(self, name: str) -> str:
        """Returns `OWN`, `FALLBACK`, `COMPOSED` or `NO_KERNEL` for a qualified operator name."""
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._look_up(name)
        return known

    def _look_up(self, name: str) -> str:
        has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
        if has_kernel(name, self._key):
            return OWN
        if any(has_kernel(name, key) for key in _COMPOSITE):
            return COMPOSED
        return FALLBACK if self._has_fallback else NO_KERNEL


class OperatorMode(TorchDispatchMode):  # type: ignore[misc] # torch is not there for type checks
    """Records the operators that touch the accelerator; all others pass.

    Args:
        recorder: Receives the calls.
        target: The accelerator.
    """

    def __init__(self, recorder: Recorder, target: Target) -> None:
        super().__init__()
        self._recorder = recorder
        self._device = target.device
        self._origins = KernelOrigins(torch._C._dispatch_key_for_device(target.device.type))

    supports_higher_order_operators = True

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Lets torch.compile work as without us: compiled kernels are no operators."""
        return True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Says that `_hide_from_dynamo` does it, without importing Dynamo."""
        return hasattr(torch._C._dynamo.eval_frame, "set_code_exec_strategy") is False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Runs one operator."""
        kwargs = kwargs or {}
        if _is_special(func, types):
            return func(*args, **kwargs)
        if not self._recorder.running or not self._on_accelerator(args, kwargs):
            with torch._C._AutoDispatchBelowAutograd():
                return func(*args, **kwargs)
        name = func.name()
        origin = self._origins.of(name)
        raised = True
        start = time.perf_counter()
        try:
            if origin == COMPOSED and name not in self._recorder.thread.composing:
                result = self._run_parts(func, name, args, kwargs)
            else:
                with torch._C._AutoDispatchBelowAutograd():
                    result = func(*args, **kwargs)
            raised = False
            return result
        finally:
            seconds = time.perf_counter() - start
            self._recorder.record(origin, name, seconds, raised=raised)

    def _run_parts(self, func: Any, name: str, args: tuple[Any, ...], kwargs: Any) -> Any:
        """Runs a composed operator with this mode in force for the operators it is made of."""
        composing = self._recorder.thread.composing
        composing.add(name)
        torch._C._push_on_torch_dispatch_stack(self)
        try:
            with torch._C._AutoDispatchBelowAutograd():
                return func.redispatch(self._origins.keyset, *args, **kwargs)
        finally:
            torch._C._pop_torch_dispatch_stack(None)
            composing.discard(name)

    def _on_accelerator(self, args: Iterable[Any], kwargs: dict[str, Any]) -> bool:
        device_type = self._device.type
        wanted = kwargs.get("device")
        if wanted is not None and torch.device(wanted).type == device_type:
            return True
        return any(
            value.layout is torch.strided and value.device.type == device_type
            for value in _tensors((*args, *kwargs.values()))
        )


def _is_special(func: Any, types: Any) -> bool:
    """Tells what is run by other means than a kernel of the device.

    That are control flow operators, and tensor subclasses with a way of their own, such as
    FakeTensor.
    """
    return not isinstance(func, torch._ops.OpOverload) or any(
        kind.__torch_dispatch__ is not _NO_DISPATCH for kind in types
    )


def _tensors(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


def watch(journal: Journal, recorder: Recorder, target: Target) -> None:
    """Watches this thread from now on, and every thread that Python starts from now on.

    Args:
        journal: Receives the changes; rolling it back ends the watching.
        recorder: Receives the operators.
        target: The accelerator.
    """
    mode = OperatorMode(recorder, target)
    _hide_from_dynamo(OperatorMode.__torch_dispatch__)
    journal.on_rollback(recorder.stop)
    mode.__enter__()
    journal.on_rollback(lambda: _leave(mode))
    bootstrap: Callable[[threading.Thread], None] = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

    def watched(thread: threading.Thread) -> None:
        if not recorder.running:
            bootstrap(thread)
            return
        torch._C._push_on_torch_dispatch_stack(mode)
        try:
            bootstrap(thread)
        finally:
            torch._C._pop_torch_dispatch_stack(None)

    journal.set_attribute(threading.Thread, "_bootstrap_inner", watched)
    for function in (torch.jit._trace._trace_impl, torch.jit._trace.trace_module):
        journal.redirect_function(function, _without(mode, function_copy(function)))


def _without(mode: OperatorMode, function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns `function`, called with the mode off: ``torch.jit.trace`` fails under any mode."""

    def unwatched(*args: Any, **kwargs: Any) -> Any:
        if not _is_on_top(mode):
            return function(*args, **kwargs)
        torch._C._pop_torch_dispatch_stack(None)
        try:
            return function(*args, **kwargs)
        finally:
            torch._C._push_on_torch_dispatch_stack(mode)

    return unwatched


def _is_on_top(mode: OperatorMode) -> bool:
    depth = torch._C._len_torch_dispatch_stack()
    return bool(depth) and torch._C._get_dispatch_stack_at(depth - 1) is mode


def _leave(mode: OperatorMode) -> None:
    """Takes the mode off this thread's stack if it is on top; elsewhere it stays, doing nothing."""
    if _is_on_top(mode):
        mode.__exit__(None, None, None)


def _hide_from_dynamo(function: Callable[..., Any]) -> None:
    """Keeps torch.compile from compiling the mode when it is called within compiled code."""
    frames = torch._C._dynamo.eval_frame
    if not OperatorMode._should_skip_dynamo():
        skip = frames._FrameAction.SKIP
        frames.set_code_exec_strategy(function.__code__, frames._FrameExecStrategy(skip, skip))
