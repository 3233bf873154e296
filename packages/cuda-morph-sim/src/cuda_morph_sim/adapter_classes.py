"""Classes of a simulated adapter: streams, events, contexts and mixed precision."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded by the loader only, when torch already is

from cuda_morph_sim.adapter_calls import absent_function
from cuda_morph_sim.device_control import StreamContext

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cuda_morph_sim.pose import Pose

HANDLE_SUFFIX = "_stream"
"""Adapters name a stream's handle after their device, as CUDA does: ``npu_stream``."""


def classes(pose: Pose, native: Any) -> dict[str, type]:
    """Return the adapter's classes that have a meaning on the simulated device.

    Args:
        pose: The plugin's records.
        native: The native half of the device.

    Returns:
        Classes by their name in the device module.
    """
    return {
        "Stream": _stream_class(pose),
        "Event": _event_class(pose),
        "StreamContext": _context_class(native),
        **_amp_classes(pose),
    }


def amp_functions(pose: Pose) -> dict[str, Any]:
    """Return the functions of the adapter's ``amp`` module.

    Args:
        pose: The plugin's records.

    Returns:
        Functions by their name in that module.
    """
    return {
        "custom_fwd": functools.partial(torch.amp.custom_fwd, device_type=pose.device_type),
        "custom_bwd": functools.partial(torch.amp.custom_bwd, device_type=pose.device_type),
    }


def _stream_class(pose: Pose) -> type:
    def make(cls: type, device: Any = None, priority: int = 0, **identity: Any) -> Any:
        if identity:
            return torch.Stream.__new__(cls, **identity)
        place = _device(pose, device)
        return torch.Stream.__new__(cls, place, priority=priority)

    body = {
        "__new__": make,
        "__doc__": "A queue of device work.",
        f"{pose.device_type}{HANDLE_SUFFIX}": property(lambda stream: stream.native_handle),
    }
    return _class(pose, "Stream", (torch.Stream,), body)


def _event_class(pose: Pose) -> type:
    def make(
        cls: type, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> Any:
        return torch.Event.__new__(
            cls,
            device=_device(pose, None),
            enable_timing=enable_timing,
            blocking=blocking,
            interprocess=interprocess,
        )

    body = {"__new__": make, "__doc__": "A mark in a stream."}
    return _class(pose, "Event", (torch.Event,), body)


def _context_class(native: Any) -> type:
    class Context(StreamContext):
        """Make a stream current for a block; ``None`` changes nothing."""

        def __init__(self, stream: torch.Stream | None) -> None:
            super().__init__(stream, native)

        def __enter__(self) -> Any:
            return super().__enter__() if self.stream is not None else None

        def __exit__(self, *exception: object) -> None:
            if self.stream is not None:
                super().__exit__(*exception)

    Context.__name__ = Context.__qualname__ = "StreamContext"
    return Context


def _amp_classes(pose: Pose) -> dict[str, type]:
    kind = pose.device_type

    class autocast(torch.amp.autocast):  # type: ignore[misc]  # noqa: N801 - torch's spelling
        """Mixed precision on this device."""

        def __init__(
            self,
            enabled: bool = True,
            dtype: torch.dtype = torch.float16,
            cache_enabled: bool = True,
        ) -> None:
            super().__init__(kind, dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)

    class GradScaler(torch.amp.GradScaler):  # type: ignore[misc]
        """Scaling of gradients on this device."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(kind, *args, **kwargs)

    return {"amp.autocast": autocast, "amp.GradScaler": GradScaler}


def with_methods(made: type, methods: Mapping[str, str]) -> type:
    """Add the methods that the adapter's class has and the simulated one lacks.

    Args:
        made: The class.
        methods: Method names, each with its name as programs write it.

    Returns:
        The class itself, where such a method raises.
    """
    for name, full_name in methods.items():
        if not hasattr(made, name):
            setattr(made, name, absent_function(full_name))
    return made


def _device(pose: Pose, device: Any) -> torch.device:
    if device is None:
        return torch.device(pose.device_type, torch._C._accelerator_getDeviceIndex())
    return (
        torch.device(pose.device_type, device) if isinstance(device, int) else torch.device(device)
    )


def _class(pose: Pose, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
    return type(name, bases, {**body, "__module__": pose.surface.module})
