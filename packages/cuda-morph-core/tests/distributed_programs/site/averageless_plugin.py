"""A plugin whose collective library has no average, and says so."""

from __future__ import annotations

import dataclasses

from cuda_morph.hookspecs import hookimpl
from cuda_morph.records import CollectiveBackend, DeviceMapping
from cuda_morph_sim import plugin as sim

cuda_morph_detect = sim.cuda_morph_detect


@hookimpl
def cuda_morph_backend():
    return dataclasses.replace(
        sim.cuda_morph_backend(), name="averageless", collective_backend="noavgccl"
    )


@hookimpl
def cuda_morph_device_mapping():
    return DeviceMapping(target="sim", module="torch.sim", init=start)


@hookimpl
def cuda_morph_collectives():
    yield CollectiveBackend(name="noavgccl", device_types=("sim",), ops=("-avg",))


def start():
    from cuda_morph_sim import process_group
    from cuda_morph_sim.loader import load

    load("sim")
    process_group.register("noavgccl", "sim", ops=("-avg",))
