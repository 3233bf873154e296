"""Choosing the one backend of this process, and saying why.

Order: the caller's argument, ``CUDA_MORPH_BACKEND``, the only available accelerator, PyTorch's own
CUDA (left alone), a simulated device, the CPU with a warning. A simulation of another plugin's
device, ``sim:mychip``, is chosen by name only.
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING

from cuda_morph import environment, plugins
from cuda_morph.builtin import REAL_CUDA
from cuda_morph.errors import (
    AmbiguousBackendError,
    BackendUnavailableError,
    PluginError,
    SettingError,
    TorchMissingError,
    UnknownBackendError,
)
from cuda_morph.frozen_record import frozen_record
from cuda_morph.plugin_status import FAULTY, USABLE, PluginRow, PluginStatus
from cuda_morph.records import Backend, Detection, Simulation

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FALLBACKS = ("cpu", "error")
"""What may be done when there is no accelerator."""

_SEE_PLUGINS = "cuda-morph plugins shows the state of every plugin."


@frozen_record
class Selection:
    """The backend that was chosen."""

    backend: Backend
    plugin: str
    """Name of the plugin; ``cuda`` when PyTorch's own CUDA was chosen without one."""
    detection: Detection
    reason: str
    """Why this one, in words."""
    warnings: tuple[str, ...] = ()
    """What the user should see once."""
    simulator: str | None = None
    """Name of the plugin that simulates the device: the part before the colon of ``sim:mychip``."""
    simulation: Simulation | None = None
    """The device it offers."""

    @property
    def requested(self) -> str:
        """What `activate` would be given to get the same."""
        return f"{self.simulator}:{self.plugin}" if self.simulator else self.plugin

    @property
    def passthrough(self) -> bool:
        """True when nothing is to be changed: PyTorch itself answers to CUDA's names."""
        return self.backend.device_type == REAL_CUDA.device_type


def select_backend(requested: str | None = None, *, fallback: str = "cpu") -> Selection:
    """Chooses the backend.

    Args:
        requested: Name of a plugin, ``cuda``, or ``simulator:plugin``. ``None``: the environment,
            else what is there.
        fallback: Without any accelerator, ``"cpu"`` chooses the CPU and ``"error"`` raises.

    Returns:
        The choice with its reason.

    Raises:
        UnknownBackendError: The named backend is not installed.
        BackendUnavailableError: The named backend cannot be used, or none can and the fallback
            is refused.
        AmbiguousBackendError: Several could be meant.
        PluginError: The named plugin is broken, incompatible or in conflict; any is, in strict
            mode.
        SettingError: An argument is not understood.
        TorchMissingError: There is nothing to fall back to without PyTorch.
    """
    fallback = environment.choose(str(fallback), FALLBACKS, "fallback")
    if requested is not None:
        return _named(requested, "it was asked for by name")
    from_environment = environment.read(environment.BACKEND)
    if from_environment is None:
        return _found(fallback)
    try:
        return _named(from_environment, f"{environment.BACKEND.name} names it")
    except UnknownBackendError as error:
        text = f"{error.message} The name comes from {environment.BACKEND.name}."
        raise UnknownBackendError(text, hint=error.hint) from None


def real_cuda_available() -> bool:
    """Tells whether PyTorch's own CUDA can be used. Imports torch."""
    return _real_cuda_devices() > 0


def _real_cuda_devices() -> int:
    try:
        import torch
    except Exception:  # noqa: BLE001 - a PyTorch that cannot be imported has no CUDA
        return 0
    version = torch.version
    if getattr(version, "cuda", None) is None and getattr(version, "hip", None) is None:
        return 0
    count = getattr(torch._C, "_cuda_getDeviceCount", None)
    # While a backend is active this name is ours, in Python or compiled; only torch's own counts.
    own = str(getattr(count, "__module__", "")).startswith("cuda_morph")
    if own or not isinstance(count, types.BuiltinFunctionType):
        return 0
    try:
        return int(count())
    except Exception:  # noqa: BLE001 - a driver that fails to start counts as none
        return 0


def _named(requested: str, why: str) -> Selection:
    if not isinstance(requested, str) or not requested.strip():
        raise SettingError(
            f"backend={requested!r} is not the name of a backend.", hint=_SEE_PLUGINS
        )
    name, subject = _split(requested)
    if subject is not None:
        return _simulated(name, subject, why)
    if name == REAL_CUDA.name:
        return _passthrough(why)
    row = plugins.get_plugin(name)
    if row.status in USABLE:
        row = plugins.get_plugin(name, detect=True)
    if row.status is not PluginStatus.READY:
        raise _refusal(row)
    return _selection(row, why, plugins.unmatched_names())


def _split(requested: str) -> tuple[str, str | None]:
    """Splits ``simulator:plugin``; without a colon the second part is ``None``."""
    name, colon, subject = requested.strip().partition(":")
    return name.strip(), subject.strip() if colon else None


def check_request(requested: str) -> None:
    """Refuses a backend that is not installed or cannot be used, without asking for its device.

    Args:
        requested: Name of a plugin, ``cuda``, or ``simulator:plugin``.

    Raises:
        MorphError: It cannot be what was meant; the message says what can.
    """
    name, subject = _split(requested)
    if name != REAL_CUDA.name or subject is not None:
        _check_names(name, subject)


def _check_names(name: str, subject: str | None) -> PluginRow:
    """Returns the row of the plugin whose hooks are to be used."""
    if name == REAL_CUDA.name:
        raise SettingError(
            f"PyTorch's own CUDA does not simulate other backends; got '{name}:{subject}'.",
            hint=f"Use {name!r} alone.",
        )
    rows = [plugins.get_plugin(name)]
    if subject is not None:
        from cuda_morph import simulation

        rows.append(simulation.check(name, subject))
    for row in rows:
        if row.status not in USABLE:
            raise _refusal(row)
    return rows[-1]


def _simulated(simulator: str, subject: str, why: str) -> Selection:
    row = _check_names(simulator, subject)
    if row.backend is None:
        raise PluginError(f"Plugin {row.name!r} was not loaded.", hint=_SEE_PLUGINS)
    from cuda_morph import simulation

    backend, found = simulation.simulate(simulator, row.backend)
    return Selection(
        backend=backend,
        plugin=row.name,
        detection=found.detection,
        reason=f"{why}; {simulator!r} simulates it ({_devices(found.detection)})",
        warnings=plugins.unmatched_names(),
        simulator=simulator,
        simulation=found,
    )


def _refusal(row: PluginRow) -> Exception:
    """Returns the error for a plugin that was asked for by name and cannot be used."""
    if row.status in FAULTY:
        error = PluginError(
            f"Plugin {row.name!r} ({row.dist}) is {row.status.value}: {row.reason}.",
            hint=_SEE_PLUGINS,
        )
        error.__cause__ = row.error
        return error
    if row.status is PluginStatus.BLOCKED:
        return BackendUnavailableError(
            f"Backend {row.name!r} is {row.reason}.", hint="Change that variable to use it."
        )
    return BackendUnavailableError(
        f"Backend {row.name!r} is installed but cannot be used: {row.reason.rstrip('.')}.",
        hint=_advice(row),
    )


def _advice(row: PluginRow) -> str:
    own = row.detection.details.get("advice") if row.detection else None
    if own:
        return f"{own} cuda-morph doctor looks further."
    steps = []
    if row.backend and row.backend.runtime_requires:
        steps.append(f"Check that {' and '.join(row.backend.runtime_requires)} can be imported.")
    if row.backend and row.backend.smi:
        steps.append(f"Check that {row.backend.smi} lists a card.")
    return " ".join([*steps, "cuda-morph doctor looks further."])


def _found(fallback: str) -> Selection:
    rows = plugins.discover(detect=True)
    warnings = (
        *plugins.unmatched_names(),
        *(
            f"Plugin {row.name!r} ({row.dist}) is {row.status.value} and was ignored: {row.reason}"
            for row in rows
            if row.status in FAULTY
        ),
    )
    vendors = [row for row in rows if not row.builtin]
    real = _only(row for row in vendors if row.backend and not row.backend.simulated)
    if real:
        return _selection(real, "it is the only available accelerator", warnings)
    if real_cuda_available():
        return _passthrough("no other accelerator is available", warnings)
    simulated = _only(row for row in vendors if row.backend and row.backend.simulated)
    if simulated:
        text = f"No accelerator is available: using the simulated device {simulated.name!r}."
        why = "no accelerator is available and it is simulated"
        return _selection(simulated, why, (*warnings, text))
    return _fall_back(rows, fallback, warnings)


def _only(rows: Iterable[PluginRow]) -> PluginRow | None:
    available = [row for row in rows if row.status is PluginStatus.READY]
    if len(available) > 1:
        listed = "; ".join(f"{row.name} ({_devices(row.detection)})" for row in available)
        first = available[0].name
        raise AmbiguousBackendError(
            f"Several accelerators are available: {listed}.",
            hint=f"Name one: activate({first!r}) or {environment.BACKEND.name}={first}.",
        )
    return available[0] if available else None


def _fall_back(rows: Sequence[PluginRow], fallback: str, warnings: tuple[str, ...]) -> Selection:
    others = [row for row in rows if not row.builtin]
    reasons = _reasons(others)
    if fallback == "error":
        raise BackendUnavailableError(
            f"No accelerator is available ({reasons}).",
            hint="Allow the fallback 'cpu', or repair the plugin of your accelerator.",
        )
    cpu = next((row for row in rows if row.builtin and row.name == fallback), None)
    if cpu is None or cpu.status is not PluginStatus.READY:
        reason = cpu.reason if cpu else "it is not installed"
        missing = cpu is not None and cpu.status is PluginStatus.UNAVAILABLE
        error_type = TorchMissingError if missing else BackendUnavailableError
        raise error_type(
            f"No accelerator is available ({reasons}) and the CPU cannot stand in: {reason}.",
            hint="Install the build of PyTorch that your accelerator's vendor asks for.",
        )
    text = f"No accelerator is available ({reasons}): CUDA calls run on the CPU."
    return _selection(cpu, "no accelerator is available", (*warnings, text))


def _reasons(rows: Sequence[PluginRow]) -> str:
    """Says why each plugin was not chosen; those without anything of their vendor here together."""
    from cuda_morph.adapter_detection import ABSENT, PROBLEM

    nothing = [
        row for row in rows if row.detection and row.detection.details.get(PROBLEM) in ABSENT
    ]
    said = [f"{row.name}: {row.reason.rstrip('.')}" for row in rows if row not in nothing]
    if nothing:
        said.append(f"nothing is installed for {', '.join(row.name for row in nothing)}")
    return "; ".join(said) or "no plugin is installed"


def _passthrough(why: str, warnings: tuple[str, ...] = ()) -> Selection:
    count = _real_cuda_devices()
    if count < 1:
        raise BackendUnavailableError(
            "PyTorch's own CUDA was asked for and has no usable device.",
            hint="Name another backend, or none to use what is there.",
        )
    return Selection(
        backend=REAL_CUDA,
        plugin=REAL_CUDA.name,
        detection=Detection(available=True, device_count=count),
        reason=f"{why}; PyTorch's own CUDA has {count} device(s)",
        warnings=warnings,
    )


def _selection(row: PluginRow, why: str, warnings: tuple[str, ...]) -> Selection:
    if row.backend is None or row.detection is None:
        raise PluginError(f"Plugin {row.name!r} was not asked for its device.", hint=_SEE_PLUGINS)
    return Selection(
        backend=row.backend,
        plugin=row.name,
        detection=row.detection,
        reason=f"{why} ({_devices(row.detection)})",
        warnings=warnings,
    )


def _devices(detection: Detection | None) -> str:
    if detection is None:
        return "not detected"
    said = f", {detection.reason}" if detection.reason else ""
    return f"{detection.device_count} device(s){said}"
