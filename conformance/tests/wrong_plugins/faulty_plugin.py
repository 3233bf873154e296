"""The hooks of a plugin over the simulated device, right but for one fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import attention_faults  # noqa: F401 - modules of faults register them
import collective_faults  # noqa: F401
import device_faults  # noqa: F401
import kernel_faults  # noqa: F401
import loading_faults  # noqa: F401
from fault import FAULTS, Fault

from cuda_morph.hookspecs import hookimpl
from cuda_morph_sim import plugin as sim

NAME = "wrong"
RIGHT = Fault(name="", does="Nothing.", kind="none", caught_by=(), apply=lambda *_arguments: None)
"""The control: a plugin without a fault must fail no check."""

_done: list[str] = []


def hooks(fault_name: str) -> dict[str, Callable[..., Any]]:
    """Return the hooks of the plugin that has the fault; none has the name ``""``."""
    fault = FAULTS[fault_name] if fault_name else RIGHT
    made = {name: hook for name, hook in vars(sim).items() if name.startswith("cuda_morph_")}
    del made["cuda_morph_simulate"]  # it simulates nobody else

    def cuda_morph_backend() -> Any:
        return replace(sim.cuda_morph_backend(), name=NAME)

    def cuda_morph_device_mapping() -> Any:
        runtime = partial(_runtime, fault) if fault.kind == "runtime" else None
        return replace(
            sim.cuda_morph_device_mapping(), init=partial(_start, fault), runtime=runtime
        )

    made["cuda_morph_backend"] = cuda_morph_backend
    made["cuda_morph_device_mapping"] = cuda_morph_device_mapping
    if fault.kind == "records":
        fault.apply(made)
    return {name: hookimpl(hook) for name, hook in made.items()}


def _start(fault: Fault) -> Any:
    from cuda_morph_sim.loader import load

    device = load("sim")
    if fault.kind == "device" and not _done:
        _done.append(fault.name)
        fault.apply(device)
    return device


def _runtime(fault: Fault) -> Any:
    import torch

    from cuda_morph.device.accelerator import AcceleratorRuntime

    runtime = AcceleratorRuntime("sim", torch.sim, sim.COMPUTE_CAPABILITY)
    fault.apply(runtime)
    return runtime
