"""The device module: what ``torch.sim`` offers, with the signatures of ``torch.cuda``."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import Any

import torch  # noqa: TID253 - loaded by the loader only, when torch already is

from cuda_morph_sim import collectives
from cuda_morph_sim.device_control import DeviceContext, DeviceOfContext, StreamContext
from cuda_morph_sim.properties import COMPUTE_CAPABILITY, DEVICE_NAME, properties_of
from cuda_morph_sim.random_state import random_functions

NATIVE = (
    "current_device",
    "device_count",
    "empty_cache",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_device",
    "set_memory_limit",
    "set_per_process_memory_fraction",
)
"""Functions that the native module gives as they are: some are called in every training step."""


def make_module(name: str, native: Any) -> ModuleType:
    """Make the device module.

    Args:
        name: The device type; the module is called ``torch.<name>``.
        native: The native half of the device.

    Returns:
        A module with CUDA's names over the simulated device.
    """
    module = ModuleType(f"torch.{name}", "The simulated accelerator's device module.")
    vars(module).update(device_functions(native))
    vars(module).update(_property_functions(native))
    vars(module)["register_collectives"] = lambda: collectives.register(name)
    vars(module)["compile_backend"] = "inductor"
    # Pickling and `import torch.sim` find the module by its name.
    sys.modules[module.__name__] = module
    return module


def device_functions(native: Any) -> dict[str, Any]:
    """Return what the device does under CUDA's names, less what it says about itself.

    Args:
        native: The native half of the device.

    Returns:
        Functions, classes and constants by name.
    """
    return {
        **{name: getattr(native, name) for name in NATIVE},
        **_state_functions(native),
        **_stream_functions(native),
        **random_functions(native),
    }


def _state_functions(native: Any) -> dict[str, Any]:
    class device(DeviceContext):  # noqa: N801 - torch.cuda's spelling
        """Make a device current for a block."""

        _native = native

    class device_of(DeviceOfContext):  # noqa: N801 - torch.cuda's spelling
        """Make a tensor's device current for a block."""

        _native = native

    def init() -> None:
        """Nothing is left to be done: loading the device has initialised it."""

    def _maybe_exchange_device(index: int) -> int:
        return int(native.exchange_device(index))

    return {
        "device": device,
        "device_of": device_of,
        "init": init,
        "_lazy_init": init,
        # Checkpointing keeps the device's random numbers only where it reads this as true.
        "_initialized": True,
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "_is_in_bad_fork": lambda: False,
        "_exchange_device": native.exchange_device,
        "_maybe_exchange_device": _maybe_exchange_device,
    }


def _stream_functions(native: Any) -> dict[str, Any]:
    def current_stream(device: Any = None) -> torch.Stream:
        """Return the stream that this thread uses on a device."""
        return torch._C._accelerator_getStream(native.index_of(device))

    def default_stream(device: Any = None) -> torch.Stream:
        """Return a device's default stream."""
        return torch.Stream(
            stream_id=0,
            device_index=native.index_of(device),
            device_type=current_stream().device_type,
        )

    def set_stream(stream: torch.Stream | None) -> None:
        """Make a stream current for this thread, and its device with it."""
        if stream is not None:
            torch._C._accelerator_setStream(stream)

    def stream(stream: torch.Stream | None) -> AbstractContextManager[Any]:
        """Make a stream current for a block; ``None`` changes nothing."""
        return nullcontext() if stream is None else StreamContext(stream, native)

    def synchronize(device: Any = None) -> None:
        """Wait for all work on a device; the simulated device has done it already."""
        native.index_of(device)

    return {
        "Stream": torch.Stream,
        "Event": torch.Event,
        "current_stream": current_stream,
        "default_stream": default_stream,
        "set_stream": set_stream,
        "stream": stream,
        "synchronize": synchronize,
    }


def _property_functions(native: Any) -> dict[str, Any]:
    def get_device_properties(device: Any = None) -> Any:
        """Return what the device says about itself, under CUDA's field names."""
        index = native.index_of(device)
        return properties_of(index, native.mem_get_info(index)[1])

    def get_device_name(device: Any = None) -> str:
        """Return the device's name."""
        native.index_of(device)
        return DEVICE_NAME

    def get_device_capability(device: Any = None) -> tuple[int, int]:
        """Return the compute capability that the device answers with."""
        native.index_of(device)
        return COMPUTE_CAPABILITY

    def is_bf16_supported(including_emulation: bool = True) -> bool:  # noqa: ARG001 - torch.cuda's
        """Whether bfloat16 works; it always does."""
        return True

    def get_amp_supported_dtype() -> list[torch.dtype]:
        """Return the dtypes that autocast may use here."""
        return [torch.float16, torch.bfloat16]

    return {
        "get_device_properties": get_device_properties,
        "get_device_name": get_device_name,
        "get_device_capability": get_device_capability,
        "is_bf16_supported": is_bf16_supported,
        "get_amp_supported_dtype": get_amp_supported_dtype,
    }
