"""Constructors that accept device strings, for the classes that PyTorch writes in C."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cuda_morph.interception.constructors import cuda_event_constructor

if TYPE_CHECKING:
    from cuda_morph.interception.constructors import Constructor
    from cuda_morph.interception.device_arguments import DeviceNames

NewMethod = Callable[..., Any]


def device_constructor(original: Constructor, names: DeviceNames) -> NewMethod:
    """Returns a ``torch.device.__new__`` that understands CUDA's names."""

    def new(cls: type, *args: Any, **kwargs: Any) -> Any:
        first = "device" if "device" in kwargs else "type"
        value = args[0] if args else kwargs.get(first)
        native = names.native(value)
        if native is value:
            return original(cls, args, kwargs)
        indexed = len(args) > 1 or "index" in kwargs
        if indexed and value != "cuda":
            return original(cls, args, kwargs)  # two indices: PyTorch names the string it refuses
        if indexed and names.device_type == "cpu":
            return original(cls, (native,), {})
        if args:
            return original(cls, (native, *args[1:]), kwargs)
        return original(cls, args, {**kwargs, first: native})

    return new


def leading_constructor(original: Constructor, names: DeviceNames) -> NewMethod:
    """Returns a ``__new__`` for a class whose ``device`` comes first or by name."""

    def new(cls: type, *args: Any, **kwargs: Any) -> Any:
        if "device" in kwargs:
            kwargs["device"] = names.native(kwargs["device"])
        elif args:
            args = (names.native(args[0]), *args[1:])
        return original(cls, args, kwargs)

    return new


def keyword_constructor(original: Constructor, names: DeviceNames) -> NewMethod:
    """Returns a ``__new__`` for a class whose ``device`` comes by name only."""

    def new(cls: type, *args: Any, **kwargs: Any) -> Any:
        if "device" in kwargs:
            kwargs["device"] = names.native(kwargs["device"])
        return original(cls, args, kwargs)

    return new


def event_constructor(original: Constructor, names: DeviceNames) -> NewMethod:
    """Returns a ``torch.Event.__new__`` that understands CUDA's names and positional options."""
    return cuda_event_constructor(leading_constructor(original, names))
