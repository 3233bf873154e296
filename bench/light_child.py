"""Measured process of the family ``activation``: what is paid when nothing is asked for.

Usage: python light_child.py import|autoload; the last line is JSON.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import EntryPoint


def now() -> tuple[float, float]:
    """Returns CPU time of this process and wall time."""
    return time.process_time(), time.perf_counter()


def import_package() -> tuple[float, float]:
    """Starts the clocks and runs ``import cuda_morph`` in a process without torch."""
    start = now()
    import cuda_morph  # noqa: F401

    return start


def autoload() -> tuple[float, float]:
    """Starts the clocks and calls core's entry point as ``import torch`` does; nothing is set."""
    import torch  # noqa: F401 - without the entry point: TORCH_DEVICE_BACKEND_AUTOLOAD=0

    entry = EntryPoint("cuda_morph", "cuda_morph.inheritance:autoload", "torch.backends")
    start = now()
    entry.load()()
    return start


started = {"import": import_package, "autoload": autoload}[sys.argv[1]]()
print(json.dumps({"ms": [1e3 * (end - start) for start, end in zip(started, now(), strict=True)]}))
