"""What the shim costs: nothing for code without CUDA, little for calls that it answers.

Times are compared inside one process, as the smallest of many short blocks that alternate between
both sides. A check that misses its limit measures again, up to three times, before it fails: noise
only ever adds time.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from cuda_morph_conformance.registry import check, require
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_morph_conformance.subject import Subject

_runs = partial(check, level=Level.RUNS, since="1.0", devices=1)

_BYSTANDER = 1.25
"""Limit of code that has nothing to do with CUDA; core's own benchmark holds it at 1.02."""
_REDIRECTED = 1.5
_NEGLIGIBLE = 10e-6
"""Seconds per call below which a ratio does not matter; the slowest tier needs about 5e-6."""
_ANSWER = 1e-3
"""Seconds for a question that programs ask at every step."""
_ACTIVATION = 1.0
_ROUNDS = 15
_CALLS = 200
_TRIES = 3


@_runs("CM-OVH-001", fresh=True, views=("cuda",))
def bystanders_pay_nothing(subject: Subject) -> None:
    """CPU code MUST run at the same speed, within a quarter, while the plugin is active.

    Fix: do not wrap functions of torch or install modes; patch the one object that needs it.
    """
    import torch

    x = torch.ones(8)
    statements: dict[str, Callable[[], Any]] = {
        "torch.empty(8)": lambda: torch.empty(8),
        "x + x": lambda: x + x,
        "torch.zeros(8, device='cpu')": lambda: torch.zeros(8, device="cpu"),
        "x.to(torch.float64)": lambda: x.to(torch.float64),
    }
    _require_same_speed(subject, statements)


@_runs("CM-OVH-002", fresh=True, views=("cuda",))
def kernels_pay_nothing(subject: Subject) -> None:
    """Operators on device tensors MUST run at the same speed, within a quarter, while active.

    Fix: redirect names when they are read, not operators when they run; no dispatch modes.
    """
    import torch

    with subject.activate():
        x = torch.ones(8, device="cuda")
    statements: dict[str, Callable[[], Any]] = {"x + x": lambda: x + x, "x.sum()": x.sum}
    _require_same_speed(subject, statements)


@_runs("CM-OVH-003")
def device_strings_are_cheap(subject: Subject) -> None:
    """Naming the device cuda MUST cost at most half more than naming it by the vendor's own name.

    Fix: remove Python code from the way of ``torch.empty`` and ``Tensor.to``.
    """
    import torch

    host, own = torch.ones(8), subject.device_type
    pairs: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "torch.empty": (
            lambda: torch.empty(8, device=own),
            lambda: torch.empty(8, device="cuda"),
        ),
        "Tensor.to": (lambda: host.to(own), lambda: host.to("cuda")),
        "torch.device": (lambda: torch.device(own), lambda: torch.device("cuda")),
    }
    for name, (base, measured) in pairs.items():
        for _ in range(_TRIES):
            plain, redirected = _smallest(base, measured)
            if redirected <= plain * _REDIRECTED or redirected - plain <= _NEGLIGIBLE:
                break
        else:
            text = f"{name}: {redirected * 1e6:.1f} us by cuda, {plain * 1e6:.1f} us by {own}"
            require(condition=False, message=text)


@_runs("CM-OVH-004")
def answers_are_quick(_subject: Subject) -> None:
    """Questions that programs ask at every step MUST be answered within a millisecond.

    Fix: ask the driver's library in the process; do not start the vendor's tool to answer.
    """
    import torch

    calls = ("is_available", "device_count", "current_device", "memory_allocated", "current_stream")
    for name in calls:
        question = getattr(torch.cuda, name)
        seconds = min(_per_call(question, 5) for _ in range(_TRIES))
        require(seconds < _ANSWER, f"torch.cuda.{name}() takes {seconds * 1e3:.2f} ms")
    device = torch.ones(1, device="cuda")
    seconds = min(_per_call(lambda: device.is_cuda, 50) for _ in range(_TRIES))
    require(seconds < _ANSWER, f"Tensor.is_cuda takes {seconds * 1e3:.2f} ms")


@_runs("CM-OVH-005", fresh=True, views=())
def activation_is_quick(subject: Subject) -> None:
    """Activating again, with the adapter loaded, MUST take less than a second.

    Fix: do expensive work once, in ``DeviceMapping.init``, and remember that it is done.
    """
    with subject.activate():
        pass
    seconds = []
    for _ in range(_TRIES):
        start = time.perf_counter()
        with subject.activate():
            seconds.append(time.perf_counter() - start)
    require(min(seconds) < _ACTIVATION, f"activating took {min(seconds):.2f} s")


def _require_same_speed(subject: Subject, statements: dict[str, Callable[[], Any]]) -> None:
    with subject.activate():
        for statement in statements.values():
            statement()
    slow: dict[str, float] = {}
    for _ in range(_TRIES):
        slow = {}
        blocks: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in statements}
        for _ in range(_ROUNDS):
            for name, statement in statements.items():
                blocks[name][0].append(_per_call(statement))
            with subject.activate():
                for name, statement in statements.items():
                    blocks[name][1].append(_per_call(statement))
        ratios = {name: min(active) / min(plain) for name, (plain, active) in blocks.items()}
        slow = {name: ratio for name, ratio in ratios.items() if ratio > _BYSTANDER}
        if not slow:
            return
    text = ", ".join(f"{name}: {ratio:.2f} times" for name, ratio in slow.items())
    require(condition=False, message=f"slower while active: {text}")


def _smallest(first: Callable[[], Any], second: Callable[[], Any]) -> tuple[float, float]:
    """Returns the seconds per call of both, as the smallest of blocks in turn."""
    pairs = [(_per_call(first), _per_call(second)) for _ in range(_ROUNDS)]
    return min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)


def _per_call(statement: Callable[[], Any], calls: int = _CALLS) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        statement()
    return (time.perf_counter() - start) / calls
