"""CUDA's environment variables, handed to the backend under its own names.

Runs before the adapter is loaded, which reads them. A variable of the vendor that the user set
wins; one that a parent process derived from CUDA's does not, because launchers give each child a
``CUDA_VISIBLE_DEVICES`` of its own.
"""

from __future__ import annotations

import logging
import os
import re
from typing import TYPE_CHECKING

from cuda_morph import environment
from cuda_morph.plugins import collect

if TYPE_CHECKING:
    from cuda_morph.patching import Journal
    from cuda_morph.records import Backend

VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"
LAUNCH_BLOCKING = "CUDA_LAUNCH_BLOCKING"
ALLOC_CONF = "PYTORCH_CUDA_ALLOC_CONF"

_ORDINALS = re.compile(r"\s*(-?\d+\s*(,\s*-?\d+\s*)*)?")
_log = logging.getLogger("cuda_morph")


def apply(journal: Journal, backend: Backend, plugin: str) -> dict[str, str]:
    """Sets the backend's variables from CUDA's, and its defaults, until rollback.

    Args:
        journal: Records the changes.
        backend: Names its counterparts of CUDA's variables.
        plugin: Name of the plugin whose collective backend maps ``NCCL_*`` variables.

    Returns:
        The variables that were set, with their values.
    """
    given = {}
    derived = environment.read_list(environment.DERIVED)
    for source, target in _pairs(backend, plugin):
        value = os.environ.get(source)
        taken = target in os.environ and target not in derived
        if value is None or taken or source == target:
            continue
        if source == VISIBLE_DEVICES and not _ORDINALS.fullmatch(value):
            _log.warning(
                "%s=%r names devices that only NVIDIA's driver knows; %s is left unset.",
                source,
                value,
                target,
            )
            continue
        journal.set_item(os.environ, target, value)  # type: ignore[arg-type]
        given[target] = value
    for target, value in backend.env_defaults.items():
        if target not in os.environ:
            journal.set_item(os.environ, target, value)  # type: ignore[arg-type]
            given[target] = value
    if given:
        names = ",".join(sorted({*derived, *given}))
        journal.set_item(os.environ, environment.DERIVED.name, names)  # type: ignore[arg-type]
    return given


def _pairs(backend: Backend, plugin: str) -> list[tuple[str, str]]:
    own = {
        VISIBLE_DEVICES: backend.visible_devices_env,
        LAUNCH_BLOCKING: backend.launch_blocking_env,
        ALLOC_CONF: backend.alloc_conf_env,
    }
    pairs = [(source, target) for source, target in own.items() if target]
    for _, record in collect("cuda_morph_collectives", plugin=plugin):
        pairs.extend(record.env_map.items())
    return pairs
