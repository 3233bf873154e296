"""What can be seen of the bridge with one rank; the plugin is the first argument."""

import sys

import pytest
import torch.distributed as dist
import vendor_library

import cuda_morph
from cuda_morph.errors import BackendUnavailableError, RefusedError

plugin = sys.argv[1]


def tables():
    backend = dist.Backend
    return (
        dict(backend.default_device_backend_map),
        {name: list(devices) for name, devices in backend.backend_capability.items()},
        dict(backend._plugins),
        dict(backend.backend_type_map),
        list(backend.backend_list),
        hasattr(dist, "ProcessGroupNCCL"),
        hasattr(backend, "LOCALCCL"),
        dist.is_nccl_available(),
    )


def start(name):
    dist.init_process_group(name, store=dist.HashStore(), rank=0, world_size=1)


with cuda_morph.activate(plugin, view="cuda"):
    pass  # the adapter stays, as adapters do
before = tables()
with cuda_morph.activate(plugin, view="cuda"):
    if plugin == "unregistered":
        with pytest.raises(BackendUnavailableError, match=r"'absentccl'.*stands for 'nccl'"):
            start("nccl")
    else:
        start("nccl")
        assert dist.get_backend() == "nccl"
        assert dist.is_nccl_available()
        own = {"branching": "simccl", "creating": "localccl"}[plugin]
        assert vendor_library.collective_backend() == (own, False)
        with pytest.raises(RefusedError, match="NVIDIA"):
            dist.ProcessGroupNCCL(dist.HashStore(), 0, 1)
        dist.destroy_process_group()
    assert tables() != before
assert tables() == before
assert dist.Backend("nccl") == "nccl"
with cuda_morph.activate(plugin, view="native"):
    assert not dist.is_nccl_available()
    if plugin != "unregistered":
        start("nccl")
        assert dist.get_backend() == own
        dist.destroy_process_group()
assert tables() == before
print("done")
