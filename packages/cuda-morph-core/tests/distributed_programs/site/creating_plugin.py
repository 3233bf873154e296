"""A plugin that creates its process groups itself; the adapter registers no backend."""

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
        sim.cuda_morph_backend(),
        name="creating",
        collective_backend="localccl",
        native_libraries=("vendor_library",),
    )


@hookimpl
def cuda_morph_collectives():
    # The first one is of another device: the name of a backend says nothing of the device.
    yield CollectiveBackend(name="otherccl", device_types=("npu",), create=print)
    yield CollectiveBackend(name="localccl", device_types=("sim",), create=create)


def create(store, rank, size, timeout):
    import torch.distributed as dist

    return dist.ProcessGroupGloo(store, rank, size, timeout=timeout)
