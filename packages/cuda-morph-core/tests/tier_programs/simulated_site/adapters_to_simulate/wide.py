"""A plugin whose adapter has every name of ``torch.cuda``, under other parameter names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from adapters_to_simulate import plugin_hooks
from cuda_morph import api_table, records
from cuda_morph.hookspecs import hookimpl

NAME = "wide"
PRIVATE = [
    "_initialized",
    "_lazy_init",
    "_lazy_call",
    "_is_in_bad_fork",
    "_get_device_index",
    "_exchange_device",
    "_maybe_exchange_device",
    "_is_compiled",
    "_get_generator",
    "_DeviceGuard",
]
PARAMETERS = {
    "get_device_name": ("device_name",),
    "get_device_properties": ("device_name",),
    "can_device_access_peer": ("device_id", "peer_device_id"),
    "empty_cache": ("device",),
    "StreamContext": ("stream_ctx",),
}
KINDS = {"submodule": "module", "variable": "constant"}


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
    public = [
        _name(row.name.removeprefix("torch.cuda."), row.kind)
        for row in api_table.load()
        if row.name.startswith("torch.cuda.")
    ]
    stream = [
        records.SurfaceName(name="Stream.wait_event", kind="method", parameters=("self", "event")),
        records.SurfaceName(name="Stream.of_this_vendor", kind="method"),
    ]
    return plugin_hooks.surface(
        NAME, public + stream + [_name(name, "function") for name in PRIVATE]
    )


def _name(name: str, kind: str) -> records.SurfaceName:
    if name in ("default_generators", "_initialized", "has_half", "has_magma"):
        kind = "constant"
    elif name in plugin_hooks.CLASSES or name == "_DeviceGuard":
        kind = "class"
    return records.SurfaceName(
        name=name, kind=KINDS.get(kind, kind), parameters=PARAMETERS.get(name)
    )


@hookimpl
def cuda_morph_personality() -> records.Personality:
    return plugin_hooks.personality(
        properties={"name": "Testcard 1", "total_memory": 0, "cores": 12},
        capability={"generation": 3},
        absent_dtypes=("complex128",),
        error_texts={
            "out_of_memory": "tcMalloc failed: TC7 out of memory",
            "illegal_access": "TC9 bad address",
        },
        functions=_functions,
    )


def _functions() -> Mapping[str, Callable[..., object]]:
    return {"twice": lambda tensor: tensor * 2, "contrib.deep.count": len}
