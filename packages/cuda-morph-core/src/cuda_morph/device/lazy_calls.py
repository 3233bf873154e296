"""Calls that were queued until CUDA initialises, such as seeds set before activation."""

from __future__ import annotations

from typing import Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is

_TORCH_OWN = frozenset({"_check_capability", "_check_cubins", "_register_triton_kernels"})
"""What torch.cuda queues for itself; none of it concerns another vendor's device."""

_done: list[Any] = []


def run_queued_calls() -> None:
    """Runs the queued calls that have not run yet in this process.

    PyTorch runs them when CUDA initialises, once per process. Seeds come last, as there.
    """
    tracker = torch.cuda._lazy_seed_tracker
    queued = [*torch.cuda._queued_calls, *(call for call in tracker.get_calls() if call)]
    for call, _traceback in queued:
        if getattr(call, "__name__", "") in _TORCH_OWN or any(call is seen for seen in _done):
            continue
        _done.append(call)
        call()
