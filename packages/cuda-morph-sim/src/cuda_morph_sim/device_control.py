"""Context managers that make a device or a stream current for a block."""

from __future__ import annotations

from typing import Any, ClassVar

import torch  # noqa: TID253 - loaded by the loader only, when torch already is


class DeviceContext:
    """Makes a device current for a block.

    Args:
        device: Index, device or string; ``None`` or a negative index changes nothing.
    """

    _native: ClassVar[Any]

    def __init__(self, device: Any) -> None:
        skip = device is None or (isinstance(device, int) and device < 0)
        self.idx = -1 if skip else int(self._native.index_of(device))
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = self._native.exchange_device(self.idx)

    def __exit__(self, *_exception: object) -> None:
        self.idx = self._native.exchange_device(self.prev_idx)


class DeviceOfContext(DeviceContext):
    """Makes the device of a tensor or storage current for a block.

    Args:
        obj: The tensor or storage; one on another kind of device changes nothing.
    """

    def __init__(self, obj: Any) -> None:
        ours = obj.device.type == torch._C._get_accelerator().type
        super().__init__(obj.device.index if ours else -1)


class StreamContext:
    """Makes a stream current for a block, and its device with it.

    Args:
        stream: The stream.
        native: The native half of the device.
    """

    def __init__(self, stream: torch.Stream, native: Any) -> None:
        self.stream = stream
        self._native = native
        self._previous: list[tuple[int, torch.Stream]] = []

    def __enter__(self) -> torch.Stream:
        index = self.stream.device_index
        self._previous.append(
            (self._native.current_device(), torch._C._accelerator_getStream(index))
        )
        torch._C._accelerator_setStream(self.stream)
        return self.stream

    def __exit__(self, *_exception: object) -> None:
        device, stream = self._previous.pop()
        torch._C._accelerator_setStream(stream)
        self._native.set_device(device)
