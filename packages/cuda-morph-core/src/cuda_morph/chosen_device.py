"""The device that a command is to measure: found by backend or by device string, then opened."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any

from cuda_morph import plugins
from cuda_morph.activation import activate
from cuda_morph.errors import BackendUnavailableError, MorphError, SettingError
from cuda_morph.frozen_record import frozen_record
from cuda_morph.plugin_status import USABLE
from cuda_morph.selection import check_request

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cuda_morph.manifest import Activation

_PYTORCH_S_OWN = frozenset({"cpu", "cuda", "mps", "meta"})
"""Device types that need no adapter, and so no backend of ours."""

_DEVICE = re.compile(r"([a-z][a-z0-9_]*)(?::(\d+))?", re.ASCII)


@frozen_record
class DeviceRequest:
    """What the command line asks for, checked as far as it can be without PyTorch."""

    backend: str | None
    """Plugin to activate; ``None``: the device is PyTorch's own, or what is there."""
    device: str | None
    """Device string; ``None``: the first device of the backend."""
    device_type: str | None
    """Type of the device, where it is known already."""


@frozen_record
class ChosenDevice:
    """A device that answers."""

    device: Any
    """The ``torch.device``."""
    backend: str
    display_name: str
    simulated: bool
    activation: Activation | None = None

    @property
    def label(self) -> str:
        """The device for a heading, with its simulation said."""
        return f"{self.device} ({self.display_name}{', simulated' if self.simulated else ''})"

    def as_dict(self) -> dict[str, Any]:
        """Returns the device in JSON-ready form."""
        return {
            "device": str(self.device),
            "backend": self.backend,
            "display_name": self.display_name,
            "simulated": self.simulated,
        }


def request_device(backend: str | None, device: str | None) -> DeviceRequest:
    """Checks what was asked for, without importing PyTorch.

    Args:
        backend: Plugin, ``cuda``, or ``simulator:plugin``.
        device: Device string such as ``"cuda:1"``.

    Returns:
        The request.

    Raises:
        SettingError: The two do not belong together, or the string is no device.
        MorphError: The backend is unknown or cannot be used.
    """
    kind = None if device is None else _device_type(device)
    if backend is None:
        return DeviceRequest(backend=_plugin_of(kind), device=device, device_type=kind)
    check_request(backend)
    name = backend.rpartition(":")[2].strip()
    row = None if name == "cuda" else plugins.get_plugin(name)
    own = row.backend.device_type if row is not None and row.backend is not None else name
    if kind is not None and kind != own:
        raise SettingError(
            f"Backend {backend!r} has devices of type {own!r}, not {kind!r}.",
            hint="Give --device or --backend; one of them is enough.",
        )
    return DeviceRequest(backend=backend, device=device, device_type=own)


def _device_type(device: str) -> str:
    found = _DEVICE.fullmatch(device)
    if found is not None and found[1] == "meta":
        raise SettingError("Tensors of the meta device have no values.", hint="Use another device.")
    if found is None:
        raise SettingError(
            f"{device!r} is no device.", hint="A device is a type with an index, such as cuda:0."
        )
    return found[1]


def _plugin_of(kind: str | None) -> str | None:
    """Returns the plugin whose adapter brings a device type into PyTorch."""
    if kind is None or kind in _PYTORCH_S_OWN:
        return None
    rows = plugins.discover()
    names = [
        row.name
        for row in rows
        if row.status in USABLE and row.backend is not None and row.backend.device_type == kind
    ]
    if len(names) > 1:
        raise SettingError(
            f"Several backends have devices of type {kind!r}: {', '.join(names)}.",
            hint="Name one with --backend.",
        )
    return names[0] if names else None


@contextlib.contextmanager
def opened(request: DeviceRequest, *, trace: bool = False) -> Iterator[ChosenDevice]:
    """Activates the backend, if one is needed, and makes sure that the device answers.

    Args:
        request: What was asked for.
        trace: Record what runs; see `activate`.

    Yields:
        The device.

    Raises:
        MorphError: There is no such device, or it cannot be used.
    """
    with contextlib.ExitStack() as stack:
        if request.backend is None and request.device is not None:
            chosen = _plain(request.device)
        else:
            activation = stack.enter_context(
                activate(request.backend, view="native", fallback="error", trace=trace)
            )
            chosen = _activated(activation, request.device)
        _try(chosen.device)
        yield chosen


def refuse_cpu(device_type: str | None, why: str) -> None:
    """Refuses the CPU, under whichever name it was asked for.

    Args:
        device_type: Type of the device; ``None`` while it is not known.
        why: What would be wrong with it.

    Raises:
        SettingError: It is the CPU.
    """
    if device_type == "cpu":
        raise SettingError(
            why, hint="Name an accelerator; cuda-morph plugins shows what is installed."
        )


def _activated(activation: Activation, device: str | None) -> ChosenDevice:
    backend = activation.backend
    return ChosenDevice(
        device=_torch_device(device or f"{backend.device_type}:0"),
        backend=activation.requested,
        display_name=backend.display_name,
        simulated=backend.simulated,
        activation=activation,
    )


def _plain(device: str) -> ChosenDevice:
    made = _torch_device(device)
    return ChosenDevice(device=made, backend="torch", display_name="PyTorch", simulated=False)


def _torch_device(device: str) -> Any:
    try:
        import torch
    except ImportError as error:
        from cuda_morph.errors import TorchMissingError

        raise TorchMissingError(
            f"PyTorch cannot be imported: {error}.", hint="Install PyTorch."
        ) from error
    try:
        return torch.device(device)
    except RuntimeError as error:
        raise SettingError(
            f"PyTorch knows no device {device!r}: {first_line(error)}",
            hint="cuda-morph plugins shows the backends that are installed.",
        ) from error


def _try(device: Any) -> None:
    """Makes a tensor there and reads it."""
    import torch

    try:
        torch.ones(1, device=device).cpu()
    except MorphError:
        raise
    except Exception as error:
        raise BackendUnavailableError(
            f"The device {device} cannot be used: {first_line(error)}",
            hint="cuda-morph plugins shows the backends and what they lack.",
        ) from error


def first_line(error: BaseException) -> str:
    """Returns the first line of an error's text, or its type where it has none."""
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
