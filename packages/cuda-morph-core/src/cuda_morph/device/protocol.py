"""The device protocol: what the CUDA layer needs to know from an accelerator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

DeviceArgument = Any
"""What torch.cuda accepts as a device: ``None``, an int, a string or a ``torch.device``."""


class DeviceRuntime(Protocol):
    """A small set of device functions from which all of ``torch.cuda`` is answered.

    Index arguments are device ordinals; -1 means the current device. Sizes are in bytes.
    `cuda_morph.device.accelerator.AcceleratorRuntime` implements it over any module that follows
    PyTorch's conventions for out-of-tree devices, so most plugins need none of their own.
    """

    device_type: str
    """Device type as PyTorch's parser knows it, e.g. ``npu``."""
    stream_class: type
    event_class: type

    def index_of(self, device: DeviceArgument) -> int:
        """Returns the ordinal that `device` names; the current one for ``None``."""
        ...

    def device_count(self) -> int:
        """Returns the number of visible devices."""
        ...

    def current_device(self) -> int:
        """Returns the calling thread's current device."""
        ...

    def set_device(self, index: int) -> None:
        """Makes a device current for the calling thread."""
        ...

    def exchange_device(self, index: int) -> int:
        """Makes a device current and returns the previous one; -1 in, -1 out changes nothing."""
        ...

    def synchronize(self, device: DeviceArgument = None) -> None:
        """Waits for all work on a device."""
        ...

    def current_stream(self, device: DeviceArgument = None) -> Any:
        """Returns the calling thread's current stream on a device."""
        ...

    def default_stream(self, device: DeviceArgument = None) -> Any:
        """Returns the device's default stream."""
        ...

    def set_stream(self, stream: Any) -> None:
        """Makes a stream current on its device."""
        ...

    def memory_stats(self, index: int) -> Mapping[str, int]:
        """Returns statistics under the flat keys of ``torch.cuda.memory_stats``."""
        ...

    def memory_reader(self, kind: str, moment: str) -> Callable[[DeviceArgument], int]:
        """Returns the function that reads one figure of a device.

        It is asked for at activation and called often, so the device module's own is best.

        Args:
            kind: ``allocated`` or ``reserved``.
            moment: ``current`` or ``peak``.
        """
        ...

    def reset_peak_memory(self, device: DeviceArgument = None) -> None:
        """Restarts the peaks from the present values."""
        ...

    def reset_accumulated_memory(self, device: DeviceArgument = None) -> None:
        """Restarts the running totals."""
        ...

    def memory_info(self, device: DeviceArgument = None) -> tuple[int, int]:
        """Returns ``(free, total)``."""
        ...

    def empty_cache(self) -> None:
        """Gives unused cached memory back."""
        ...

    def properties(self, index: int) -> Any:
        """Returns an object with the fields of CUDA's device properties."""
        ...

    def default_generators(self) -> Sequence[Any]:
        """Returns the default random generator of each device."""
        ...

    def supports_bf16(self) -> bool:
        """Returns whether bfloat16 tensors can be computed with."""
        ...

    def autocast_dtypes(self) -> list[Any]:
        """Returns the dtypes that autocast may use."""
        ...
