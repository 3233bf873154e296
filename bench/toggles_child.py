"""Measured process of the family ``toggles``: activation under working threads.

Usage: python toggles_child.py BACKEND TIER VIEW TOGGLES; the last line is JSON.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

import torch  # noqa: TID253 - the measured process works with it

import cuda_morph

if TYPE_CHECKING:
    from collections.abc import Callable

THREADS = 4
NOT_ACTIVE = (
    "not compiled with CUDA",  # torch.cuda's own words, from Python and from C++
    "compiled without CUDA support",
    "libcudart functions unavailable",
    "not linked with support for cuda",
    "Found no NVIDIA driver",
    "Cannot initialize CUDA",
    "Cannot access accelerator device",
    "Could not run 'aten::",
    "Expected a cuda device",
    "Expected one of cpu, cuda",  # the name of the accelerator is exchanged in the cuda view
    "has no attribute '_cuda_",  # torch._C of a CPU build
    "is not a CUDA",
    # A function of torch.cuda that was under way when CUDA went: the current device is None.
    "'<' not supported between instances of 'NoneType' and 'int'",
)
"""What PyTorch says when CUDA is asked for while cuda-morph is not active."""


def _strings(accepted: set[str]) -> None:
    assert torch.device("cpu").type == "cpu"
    assert torch.device("meta").type == "meta"
    assert torch.device("cuda").type in accepted


def _moves(accepted: set[str]) -> None:
    value = torch.arange(4.0)
    assert value.add(1).sum().item() == 10
    moved = value.cuda()
    assert moved.device.type in accepted
    assert moved.add(1).sum().item() == 10


def _functions(_accepted: set[str]) -> None:
    assert torch.cuda.device_count() in {0, 1, 2}
    assert torch.cuda.is_available() in {True, False}
    torch.cuda.synchronize()
    assert torch.cuda.current_device() in {0, 1}


def _attributes(_accepted: set[str]) -> None:
    value = torch.ones(2)
    assert value.is_cpu
    assert value.is_cuda in {True, False}
    assert isinstance(value.device, torch.device)
    assert torch.zeros(3, device="cuda").sum().item() == 0


WORK: tuple[Callable[[set[str]], None], ...] = (_strings, _moves, _functions, _attributes)


class Workers:
    """Threads that keep calling torch and count what they met."""

    def __init__(self, accepted: set[str]) -> None:
        self.accepted = accepted
        self.calls: Counter[str] = Counter()
        self.problems: Counter[str] = Counter()
        self.stop = False
        self.threads = [threading.Thread(target=self._loop, args=(k,)) for k in range(THREADS)]

    def _loop(self, number: int) -> None:
        while not self.stop:
            for step in range(len(WORK)):
                work = WORK[(step + number) % len(WORK)]
                try:
                    work(self.accepted)
                    self.calls["answered"] += 1
                except Exception as error:  # noqa: BLE001 - judged by its words
                    text = f"{type(error).__name__}: {error}".splitlines()[0]
                    if any(words in str(error) for words in NOT_ACTIVE):
                        self.calls["not active"] += 1
                    else:
                        self.problems[f"{work.__name__}: {text}"[:200]] += 1


def main() -> None:
    """Toggles while four threads work."""
    backend, tier, view, toggles = sys.argv[1:5]
    torch.set_num_threads(1)
    os.environ["CUDA_MORPH_TIER"] = tier
    sys.setswitchinterval(1e-4)  # fifty times as many chances to meet a half-made change
    with cuda_morph.activate(backend, view=view):
        own = {torch.device("cuda").type}
    workers = Workers({"cuda", backend, *own})
    for thread in workers.threads:
        thread.start()
    start = time.perf_counter()
    for _ in range(int(toggles)):
        cuda_morph.activate(backend, view=view)
        cuda_morph.deactivate()
    seconds = time.perf_counter() - start
    workers.stop = True
    for thread in workers.threads:
        thread.join()
    answer = {
        "seconds": seconds,
        "calls": dict(workers.calls),
        "problems": dict(workers.problems.most_common(5)),
        "problem_count": sum(workers.problems.values()),
    }
    print(json.dumps(answer))


main()
