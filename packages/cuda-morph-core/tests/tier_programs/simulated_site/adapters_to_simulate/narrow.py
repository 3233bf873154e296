"""A plugin whose adapter has only the names that every adapter has."""

from __future__ import annotations

from collections.abc import Iterable

from adapters_to_simulate import plugin_hooks
from cuda_morph import records
from cuda_morph.hookspecs import hookimpl

NAME = "narrow"
NAMES = [
    "Stream",
    "current_device",
    "current_stream",
    "device",
    "device_count",
    "get_rng_state",
    "get_rng_state_all",
    "is_available",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
]


@hookimpl
def cuda_morph_backend() -> records.Backend:
    return plugin_hooks.backend(NAME)


@hookimpl
def cuda_morph_detect() -> records.Detection:
    return plugin_hooks.absent()


@hookimpl
def cuda_morph_device_mapping() -> records.DeviceMapping:
    return plugin_hooks.mapping(NAME)


@hookimpl
def cuda_morph_collectives() -> Iterable[records.CollectiveBackend]:
    yield plugin_hooks.collectives(NAME)


@hookimpl
def cuda_morph_surface() -> records.AdapterSurface:
    return plugin_hooks.surface(
        NAME,
        [
            records.SurfaceName(
                name=name, kind="class" if name in plugin_hooks.CLASSES else "function"
            )
            for name in NAMES
        ],
    )


@hookimpl
def cuda_morph_personality() -> records.Personality:
    return plugin_hooks.personality()
