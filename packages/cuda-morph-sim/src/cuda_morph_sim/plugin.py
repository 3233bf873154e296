"""The plugin's hooks. Importing this module imports neither torch nor the device."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from cuda_morph.errors import SettingError
from cuda_morph.hookspecs import hookimpl
from cuda_morph.records import (
    AttentionKernel,
    Backend,
    CapabilityClaim,
    CollectiveBackend,
    Detection,
    DeviceMapping,
    DtypeSupport,
    Simulation,
)
from cuda_morph_sim import build, claims, toolchain
from cuda_morph_sim.settings import VISIBLE_VARIABLE, read_settings

if TYPE_CHECKING:
    from collections.abc import Iterable

NAME = "sim"
COMPUTE_CAPABILITY = (8, 0)


@hookimpl
def cuda_morph_backend() -> Backend:
    """Identity of the simulated accelerator."""
    return Backend(
        name=NAME,
        display_name="Simulated accelerator",
        vendor="cuda-morph",
        device_type=NAME,
        adapter_module="cuda_morph_sim.device",
        collective_backend="simccl",
        runtime_requires=("torch>=2.13",),
        simulated=True,
        visible_devices_env=VISIBLE_VARIABLE,
    )


@hookimpl
def cuda_morph_detect() -> Detection:
    """Whether a build for the present PyTorch exists or can be made."""
    torch = toolchain.find_torch()
    if torch is None:
        return Detection(available=False, reason="PyTorch is not installed.")
    try:
        settings = read_settings()
    except SettingError as error:
        return Detection(available=False, reason=error.message)
    details = {"torch": torch.version, "memory": f"{settings.memory} bytes per device"}
    if _is_loaded() or build.library_path(torch.version).is_file():
        return Detection(available=True, device_count=settings.devices, details=details)
    if toolchain.find_compiler() is None:
        return Detection(
            available=False,
            reason="It is built at first use and no C++ compiler was found.",
            details={**details, "advice": build.COMPILER_HINT},
        )
    if toolchain.find_python_headers() is None:
        return Detection(
            available=False,
            reason="It is built at first use and Python's headers (Python.h) are missing.",
            details={**details, "advice": build.HEADERS_HINT},
        )
    details["build"] = "at first use"
    return Detection(available=True, device_count=settings.devices, details=details)


def _is_loaded() -> bool:
    """Whether this process has the device: then its files, some fifty, need not be read again."""
    loader = sys.modules.get("cuda_morph_sim.loader")
    return loader is not None and loader.loaded_module() is not None


@hookimpl
def cuda_morph_device_mapping() -> DeviceMapping:
    """How the simulated device answers for CUDA."""
    return DeviceMapping(
        target=NAME,
        module=f"torch.{NAME}",
        init=_load,
        compute_capability=COMPUTE_CAPABILITY,
    )


@hookimpl
def cuda_morph_capabilities() -> Iterable[CapabilityClaim]:
    """What the simulated device claims to do."""
    return claims.CAPABILITIES


@hookimpl
def cuda_morph_collectives() -> Iterable[CollectiveBackend]:
    """A backend of its own stands for NCCL."""
    yield CollectiveBackend(name="simccl", device_types=(NAME,))


@hookimpl
def cuda_morph_attention_kernels() -> Iterable[AttentionKernel]:
    """Blocked attention; it needs neither square scores nor a card."""
    from cuda_morph_sim import attention

    yield AttentionKernel(
        name="sim_blocked",
        forward=attention.forward,
        varlen=attention.varlen,
        kvcache=attention.kvcache,
        dtypes=("float16", "bfloat16", "float32", "float64"),
        features=claims.ATTENTION_FEATURES,
    )


@hookimpl
def cuda_morph_dtypes() -> Iterable[DtypeSupport]:
    """The dtypes of the host are the device's dtypes."""
    return claims.DTYPES


@hookimpl
def cuda_morph_simulate(subject: str) -> Simulation:
    """Stands for the adapter of any plugin that has a personality."""
    from cuda_morph_sim.adapter import simulation_of

    return simulation_of(subject, cuda_morph_detect())


def _load() -> object:
    from cuda_morph_sim.loader import load

    return load(NAME)
