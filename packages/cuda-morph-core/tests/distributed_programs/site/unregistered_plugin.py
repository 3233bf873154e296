"""A plugin whose adapter does not register the backend that the plugin names."""

from __future__ import annotations

import dataclasses

from cuda_morph.hookspecs import hookimpl
from cuda_morph.records import CollectiveBackend
from cuda_morph_sim import plugin as sim

cuda_morph_detect = sim.cuda_morph_detect
cuda_morph_device_mapping = sim.cuda_morph_device_mapping


@hookimpl
def cuda_morph_backend():
    return dataclasses.replace(
        sim.cuda_morph_backend(), name="unregistered", collective_backend="absentccl"
    )


@hookimpl
def cuda_morph_collectives():
    yield CollectiveBackend(name="absentccl", device_types=("sim",))
