"""Translates device arguments, and nothing that merely looks like one.

An argument is translated when its parameter is a device by PyTorch's own signature and its value
is exactly ``cuda`` or ``cuda:N``. File names and other strings that contain the word stay as they
are, and the caller's own containers are never changed.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


_INDICES = frozenset(str(index) for index in range(128))
"""What PyTorch accepts behind the colon; other strings stay, so that its error names them."""


class DeviceNames:
    """Knows what the device strings of CUDA mean on one accelerator.

    Args:
        device_type: The accelerator's device type.

    Example:
        >>> DeviceNames("npu").native("cuda:1")
        'npu:1'
        >>> DeviceNames("npu").native("cuda.txt")
        'cuda.txt'
    """

    __slots__ = ("device_type",)

    def __init__(self, device_type: str) -> None:
        self.device_type = device_type

    def retire(self) -> None:
        """Ends the translation for functions that somebody still holds after deactivation."""
        self.device_type = "cuda"

    def native(self, value: Any) -> Any:
        """Returns the accelerator's name for a device string of CUDA, else `value` itself.

        PyTorch gives a bare number to the accelerator, and there is none beside the CPU.
        """
        if self.device_type == "cpu" and type(value) is int and value >= 0:
            return self.device_type
        if not isinstance(value, str) or value[:4] != "cuda":
            return value
        if value == "cuda":
            return self.device_type
        if value[4] != ":" or value[5:] not in _INDICES:
            return value
        # The CPU has one device, and its tensors carry no index.
        return self.device_type if self.device_type == "cpu" else self.device_type + value[4:]


class WrappedFunction:
    """Stands for a C function of PyTorch; equal to it, so tables keyed by it keep working.

    Args:
        original: The function.
        names: Translates its device argument.
        parameter: Name of the device parameter.
        leading: Whether the device may also come as the first positional argument.
    """

    def __init__(
        self, original: Callable[..., Any], names: DeviceNames, parameter: str, *, leading: bool
    ) -> None:
        functools.update_wrapper(self, original)
        self.__qualname__ = original.__name__
        self.original = original
        self._names = names
        self._parameter = parameter
        self._leading = leading

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function with its device argument translated."""
        value = kwargs.get(self._parameter)
        if value is not None:
            kwargs[self._parameter] = self._names.native(value)
        elif self._leading and args:
            args = (self._names.native(args[0]), *args[1:])
        return self.original(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, WrappedFunction):
            return other.original is self.original
        return other is self.original

    def __hash__(self) -> int:
        return hash(self.original)

    def __reduce__(self) -> Any:
        home = sys.modules.get(self.__module__)
        if getattr(home, self.__qualname__, None) is self:
            return self.__qualname__
        return self.original.__reduce__()

    def __copy__(self) -> WrappedFunction:
        return self

    def __deepcopy__(self, _memo: dict[int, Any]) -> WrappedFunction:
        return self

    def __repr__(self) -> str:
        return f"<{self.original!r} with device strings translated by cuda-morph>"


def wrap_method(original: Any, names: DeviceNames, *, leading: bool) -> Callable[..., Any]:
    """Returns a Python method that translates ``device`` and calls the C method `original`.

    Args:
        original: A method of the C class below ``torch.Tensor``.
        names: Translates the device argument.
        leading: Whether the device may also come as the first positional argument.
    """

    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        value = kwargs.get("device")
        if value is not None:
            kwargs["device"] = names.native(value)
        elif leading and args:
            args = (names.native(args[0]), *args[1:])
        return original(self, *args, **kwargs)

    return method
