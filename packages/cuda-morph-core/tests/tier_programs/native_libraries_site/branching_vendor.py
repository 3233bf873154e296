"""A plugin on the simulated device that names a library with a branch of its own."""

from __future__ import annotations

import dataclasses

from cuda_morph.hookspecs import hookimpl
from cuda_morph.records import Backend
from cuda_morph_sim import plugin as sim

cuda_morph_detect = sim.cuda_morph_detect
cuda_morph_device_mapping = sim.cuda_morph_device_mapping
cuda_morph_collectives = sim.cuda_morph_collectives


@hookimpl
def cuda_morph_backend() -> Backend:
    return dataclasses.replace(
        sim.cuda_morph_backend(), name="branching", native_libraries=("vendor_library",)
    )
