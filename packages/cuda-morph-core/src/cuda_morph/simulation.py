"""Requests such as ``sim:mychip``: one plugin simulates the device of another.

The part before the colon names a plugin with the hook ``cuda_morph_simulate``, the one after it a
plugin with the hook ``cuda_morph_personality``. Nothing here imports torch.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cuda_morph import plugins
from cuda_morph.errors import BackendUnavailableError, SettingError, UnknownBackendError
from cuda_morph.plugin_status import USABLE

if TYPE_CHECKING:
    from cuda_morph.plugin_status import PluginRow
    from cuda_morph.records import Backend, Simulation

_SIMULATE = "cuda_morph_simulate"
_PERSONALITY = "cuda_morph_personality"


def simulatable() -> tuple[str, ...]:
    """Lists the plugins that a simulation can take the place of. Loads every plugin.

    Returns:
        Their names, sorted.
    """
    return tuple(row.name for row in plugins.discover() if _has_personality(row))


def check(simulator: str, subject: str) -> PluginRow:
    """Tells whether one plugin can simulate another, without asking either for its device.

    Args:
        simulator: Plugin before the colon.
        subject: Plugin after it.

    Returns:
        The row of the simulated plugin.

    Raises:
        UnknownBackendError: One of them is not installed.
        SettingError: The first simulates no other plugin, or the second has no personality.
        PluginError: In strict mode, one of them is broken.
    """
    row = plugins.get_plugin(simulator)
    if row.status in USABLE and _SIMULATE not in row.hooks:
        raise SettingError(
            f"Backend {simulator!r} does not simulate other backends, so there is no "
            f"'{simulator}:{subject}'.",
            hint=f"Use {simulator!r} alone.",
        )
    if subject not in plugins.plugin_names():
        raise UnknownBackendError(
            f"There is no plugin {subject!r} that {simulator!r} could simulate.", hint=_choices(row)
        )
    found = plugins.get_plugin(subject)
    if found.status in USABLE and not _has_personality(found):
        raise SettingError(
            f"Backend {subject!r} has no personality, so {simulator!r} cannot simulate it.",
            hint=_choices(row),
        )
    return found


def simulate(simulator: str, subject: Backend) -> tuple[Backend, Simulation]:
    """Asks a plugin for the simulated device of another one.

    Args:
        simulator: Plugin before the colon.
        subject: Backend of the plugin after it; both were found good by `check`.

    Returns:
        The simulated plugin's backend, marked as simulated, and the simulation.

    Raises:
        BackendUnavailableError: It cannot be had in this process.
        PluginError: The simulating plugin cannot be used or broke the contract.
    """
    found = plugins.collect(_SIMULATE, plugin=simulator, subject=subject.name)
    if not found:
        raise BackendUnavailableError(
            f"Backend {simulator!r} declines to simulate {subject.name!r}.",
            hint=f"Use {simulator!r} alone.",
        )
    simulation: Simulation = found[0][1]
    if not simulation.detection.available:
        reason = simulation.detection.reason.rstrip(".") or "no reason is given"
        raise BackendUnavailableError(
            f"{subject.display_name} cannot be simulated by {simulator!r} here: {reason}.",
            hint="Start a process without it, or use another backend.",
        )
    return replace(subject, simulated=True), simulation


def _has_personality(row: PluginRow) -> bool:
    if row.status not in USABLE or _PERSONALITY not in row.hooks:
        return False
    return bool(plugins.collect(_PERSONALITY, plugin=row.name))


def _choices(simulator: PluginRow) -> str:
    names = ", ".join(f"{simulator.name}:{name}" for name in simulatable())
    if not names:
        return "No installed plugin has a personality; cuda-morph plugins lists the plugins."
    return f"Can be simulated: {names}."
