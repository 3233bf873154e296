"""The ``cpu`` plugin: CUDA code runs on the processor. Written as a vendor would write one."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from cuda_morph.hookspecs import hookimpl
from cuda_morph.records import (
    Backend,
    CapabilityClaim,
    CollectiveBackend,
    Detection,
    DeviceMapping,
    ErrorRule,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cuda_morph.device.protocol import DeviceRuntime

BACKEND = Backend(
    name="cpu",
    display_name="CPU",
    vendor="built into PyTorch",
    device_type="cpu",
    adapter_module=None,
    collective_backend="gloo",
    spec="1.0",
    runtime_requires=("torch",),
)


@hookimpl
def cuda_morph_backend() -> Backend:
    """Returns the record of the CPU."""
    return BACKEND


@hookimpl
def cuda_morph_detect() -> Detection:
    """The processor is there whenever PyTorch is; PyTorch is looked for and not imported."""
    # A loaded module counts as it is: looking for one without a spec would raise.
    if sys.modules.get("torch") is None and find_spec("torch") is None:
        return Detection(available=False, reason="PyTorch is not installed")
    return Detection(available=True, device_count=1)


@hookimpl
def cuda_morph_device_mapping() -> DeviceMapping:
    """Maps ``cuda`` to ``cpu`` with a runtime of its own: the CPU has no device module."""
    # Code that asks for a compute capability chooses modern kernels' Python paths from 8.0 on.
    return DeviceMapping(target="cpu", runtime=_runtime, compute_capability=(8, 0))


@hookimpl
def cuda_morph_capabilities() -> Iterable[CapabilityClaim]:
    """What the CPU claims to do in the place of a card."""
    from cuda_morph.builtin.cpu_claims import CAPABILITIES

    return CAPABILITIES


@hookimpl
def cuda_morph_collectives() -> Iterator[CollectiveBackend]:
    """Names the backend that PyTorch has for CPU tensors."""
    yield CollectiveBackend(name="gloo", device_types=("cpu",))


@hookimpl
def cuda_morph_error_codes() -> Iterator[ErrorRule]:
    """Names the one failure that programs written for CUDA expect: memory has run out."""
    yield ErrorRule(pattern="DefaultCPUAllocator: can't allocate", semantic="out_of_memory")


def _runtime() -> DeviceRuntime:
    from cuda_morph.device.cpu import CpuRuntime

    return CpuRuntime()
