"""Device runtime of any accelerator that follows PyTorch's conventions for device modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is

from cuda_morph.errors import BackendUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cuda_morph.device.protocol import DeviceArgument


class AcceleratorRuntime:
    """Answers the device protocol from a device module and ``torch.accelerator``.

    The module's own function is preferred wherever it has one; ``torch.accelerator``, which every
    PrivateUse1 backend gets from PyTorch, answers the rest.

    Args:
        device_type: The device type that the parser knows, e.g. ``npu``.
        module: The device module, e.g. ``torch.npu``.
        compute_capability: What ``get_device_capability`` answers.
        device_name: What a device is called where the module does not say; its type by default.
    """

    def __init__(
        self,
        device_type: str,
        module: Any,
        compute_capability: tuple[int, int] = (0, 0),
        device_name: str = "",
    ) -> None:
        self.device_type = device_type
        self.device_name = device_name or device_type
        self.module = module
        self.compute_capability = compute_capability
        self.stream_class: type = torch.Stream
        self.event_class: type = torch.Event
        self._figures: dict[str, Callable[..., int]] = {
            "allocated.current": self._own("memory_allocated"),
            "allocated.peak": self._own("max_memory_allocated"),
            "reserved.current": self._own("memory_reserved"),
            "reserved.peak": self._own("max_memory_reserved"),
        }
        self.device_count: Callable[[], int] = getattr(
            module, "device_count", torch.accelerator.device_count
        )
        self.current_device: Callable[[], int] = torch._C._accelerator_getDeviceIndex
        self.current_stream: Callable[..., Any] = torch.accelerator.current_stream
        self.synchronize: Callable[..., None] = torch.accelerator.synchronize
        self.set_stream: Callable[[Any], None] = torch._C._accelerator_setStream
        self.empty_cache: Callable[[], None] = self._own("empty_cache")

    def _own(self, name: str) -> Callable[..., Any]:
        own: Callable[..., Any] | None = getattr(self.module, name, None)
        generic: Callable[..., Any] = getattr(torch.accelerator, name)
        return generic if own is None else own

    def index_of(self, device: DeviceArgument) -> int:
        """See `DeviceRuntime.index_of`."""
        if device is None:
            return self.current_device()
        if isinstance(device, int):
            return device if device >= 0 else self.current_device()
        parsed = torch.device(device)
        return self.current_device() if parsed.index is None else int(parsed.index)

    def set_device(self, index: int) -> None:
        """See `DeviceRuntime.set_device`."""
        torch._C._accelerator_setDeviceIndex(index)

    def exchange_device(self, index: int) -> int:
        """See `DeviceRuntime.exchange_device`."""
        if index < 0:
            return -1
        return int(torch._C._accelerator_exchangeDevice(index))

    def default_stream(self, device: DeviceArgument = None) -> Any:
        """See `DeviceRuntime.default_stream`."""
        own = getattr(self.module, "default_stream", None)
        if own is not None:
            return own(device)
        type_id = self.current_stream(device).device_type
        return torch.Stream(stream_id=0, device_index=self.index_of(device), device_type=type_id)

    def memory_stats(self, index: int) -> Mapping[str, int]:
        """See `DeviceRuntime.memory_stats`."""
        stats: Mapping[str, int] = self._own("memory_stats")(index)
        return stats

    def memory_reader(self, kind: str, moment: str) -> Callable[[DeviceArgument], int]:
        """See `DeviceRuntime.memory_reader`."""
        return self._figures[f"{kind}.{moment}"]

    def reset_peak_memory(self, device: DeviceArgument = None) -> None:
        """See `DeviceRuntime.reset_peak_memory`."""
        self._own("reset_peak_memory_stats")(device)

    def reset_accumulated_memory(self, device: DeviceArgument = None) -> None:
        """See `DeviceRuntime.reset_accumulated_memory`."""
        self._own("reset_accumulated_memory_stats")(device)

    def memory_info(self, device: DeviceArgument = None) -> tuple[int, int]:
        """See `DeviceRuntime.memory_info`."""
        own = getattr(self.module, "mem_get_info", None)
        free, total = (own or torch.accelerator.get_memory_info)(device)
        return int(free), int(total)

    def properties(self, index: int) -> Any:
        """See `DeviceRuntime.properties`."""
        from cuda_morph.device.properties import CudaDeviceProperties

        own = getattr(self.module, "get_device_properties", None)
        source = own(index) if own is not None else None
        major, minor = self._capability(index)
        known: dict[str, Any] = {"major": major, "minor": minor}
        if not getattr(source, "name", ""):
            name = getattr(self.module, "get_device_name", None)
            known["name"] = name(index) if name is not None else self.device_name
        if not getattr(source, "total_memory", 0):
            known["total_memory"] = self.memory_info(index)[1]
        return CudaDeviceProperties(source, **known)

    def _capability(self, index: int) -> tuple[int, int]:
        """Returns the plugin's pair; where it names none the module's own, if that is a pair."""
        if self.compute_capability == (0, 0):
            own = getattr(self.module, "get_device_capability", None)
            said = own(index) if own is not None else None
            if isinstance(said, tuple) and len(said) == 2:  # noqa: PLR2004 - a pair
                return int(said[0]), int(said[1])
        return self.compute_capability

    def default_generators(self) -> Sequence[Any]:
        """See `DeviceRuntime.default_generators`."""
        listed = tuple(getattr(self.module, "default_generators", ()))
        if len(listed) >= self.device_count():
            return listed
        from cuda_morph.device import generators

        if not generators.can_be_found(self.module):
            raise BackendUnavailableError(
                f"The device module of {self.device_type!r} lists {len(listed)} default "
                f"generators for {self.device_count()} devices.",
                hint="The plugin must supply a device runtime with default_generators().",
            )
        return generators.LateGenerators(self.module, self.device_count)

    def supports_bf16(self) -> bool:
        """See `DeviceRuntime.supports_bf16`."""
        own = getattr(self.module, "is_bf16_supported", None)
        return bool(own()) if own is not None else torch.bfloat16 in self.autocast_dtypes()

    def autocast_dtypes(self) -> list[Any]:
        """See `DeviceRuntime.autocast_dtypes`."""
        own = getattr(self.module, "get_amp_supported_dtype", None)
        return list(own()) if own is not None else [torch.float16, torch.bfloat16]
