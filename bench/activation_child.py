"""Measured process of the family ``activation``: one fresh start.

Usage: python activation_child.py BACKEND TIER VIEW [ROUNDS]; the last line is JSON.
"""

from __future__ import annotations

import builtins
import gc
import json
import os
import sys
import time
from typing import Any

import torch  # noqa: TID253 - the measured process works with it

before = set(sys.modules)
own = {name for name in before if name.partition(".")[0] == "cuda_morph"}


def now() -> tuple[float, float]:
    """Returns CPU time of this process and wall time."""
    return time.process_time(), time.perf_counter()


def milliseconds(start: tuple[float, float], end: tuple[float, float]) -> tuple[float, float]:
    """Returns CPU time and wall time between two moments."""
    return 1e3 * (end[0] - start[0]), 1e3 * (end[1] - start[1])


def snapshot() -> dict[str, dict[str, int]]:
    """Returns the identity of everything in PyTorch's namespaces and in a few classes."""
    found = {
        name: {
            key: id(value) for key, value in vars(module).items() if key != "__warningregistry__"
        }
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] == "torch" and hasattr(module, "__dict__")
    }
    classes = (torch.Tensor, torch._C.TensorBase, torch.device, torch.Stream, torch.Event)
    for owner in (*classes, torch.cuda.Stream, torch.cuda.Event, torch.nn.Module):
        found[f"class {owner.__qualname__}"] = {key: id(item) for key, item in vars(owner).items()}
    found["builtins"] = {key: id(value) for key, value in vars(builtins).items() if key != "_"}
    found["environment"] = {key: hash(value) for key, value in os.environ.items()}
    codes = (torch.cuda.synchronize, torch.cuda.is_available, torch.cuda.current_device)
    found["code"] = {function.__name__: id(function.__code__) for function in codes}
    return found


def main() -> None:
    """Measures the first activation, then warm ones."""
    backend, tier, view = sys.argv[1:4]
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 20
    os.environ["CUDA_MORPH_TIER"] = tier
    gc.collect()  # what `import torch` left behind is not collected on our time
    start = now()
    from cuda_morph import activate, deactivate

    imported = now()
    activation = activate(backend, view=view)
    first = now()
    new = sorted((set(sys.modules) - before) | own)
    deactivate()
    clean = snapshot()
    warm, off = [], []
    for _ in range(rounds):
        begin = now()
        activate(backend, view=view)
        middle = now()
        deactivate()
        warm.append(milliseconds(begin, middle))
        off.append(milliseconds(middle, now()))
    after = snapshot()
    answer: dict[str, Any] = {
        "tier": activation.tier,
        "import_ms": milliseconds(start, imported),
        "first_ms": milliseconds(imported, first),
        "warm_ms": min(warm),
        "off_ms": min(off),
        "modules": new,
        "left_behind": [name for name in clean if clean[name] != after.get(name)],
    }
    print(json.dumps(answer))


main()
