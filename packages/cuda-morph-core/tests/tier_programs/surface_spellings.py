"""Spellings of real programs around tensors, storages, processes and devices of ``cuda``."""

from __future__ import annotations

import copy
import io
import os
import pickle
import warnings

import numpy as np
import torch
from world import only, raises


def check_modules_made_without_memory(world):
    empty = torch.nn.Linear(2, 2, device="meta").to_empty(device="cuda")
    assert empty.weight.device == world.device()
    empty.cuda("cuda:0").to(torch.device("cuda"), torch.float32, non_blocking=True)
    assert empty.weight.device == world.device()


def check_copies_and_pickles(world):
    device = torch.device("cuda:0")
    assert pickle.loads(pickle.dumps(device)) == copy.deepcopy(device) == device
    tensor = torch.arange(3, device="cuda")
    parameter = torch.nn.Parameter(torch.ones(2, device="cuda"))
    for twin in (pickle.loads(pickle.dumps(tensor)), copy.deepcopy(tensor), copy.copy(tensor)):
        assert (twin.device, twin.tolist()) == (world.device(), [0, 1, 2])
    assert copy.deepcopy(parameter).device == world.device()
    model = copy.deepcopy(torch.nn.Linear(2, 2).cuda())
    assert model.weight.device == world.device()


def check_untyped_storages(world):
    storage = torch.UntypedStorage(8, device="cuda")
    assert (storage.nbytes(), storage.device.type) == (8, world.shown)
    host = torch.ones(2).untyped_storage()
    assert host.cuda().device.type == world.shown
    assert torch.ones(2, device="cuda").untyped_storage().cpu().device.type == "cpu"
    filled = torch.empty(0, dtype=torch.uint8, device="cuda").set_(storage.fill_(3))
    assert filled.tolist() == [3] * 8


def check_typed_storages_hold_values(world):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        storage = torch.cuda.FloatStorage([1.0, 2.0])
        assert storage.tolist() == [1, 2]
        assert torch.ones(2, device="cuda").storage().type() in (
            "torch.cuda.FloatStorage",
            f"torch.{world.shown}.FloatStorage",
            "torch.FloatStorage",
            "torch.storage.TypedStorage",
        )
        assert torch.FloatStorage([3.0]).cuda().tolist() == [3]


def check_dlpack(world):
    x = torch.arange(4.0, device="cuda")
    twin = torch.from_dlpack(x)
    assert (twin.device, twin.tolist()) == (x.device, [0, 1, 2, 3])
    twin[0] = 9
    assert x[0].item() == 9
    capsule = torch.utils.dlpack.to_dlpack(x)
    assert torch.utils.dlpack.from_dlpack(capsule).data_ptr() == x.data_ptr()
    raises(RuntimeError, torch.utils.dlpack.from_dlpack, capsule)
    copy = torch.from_dlpack(x, copy=True)
    assert (copy.device, copy.data_ptr() == x.data_ptr()) == (x.device, False)
    assert torch.from_dlpack(x, device="cpu").device.type == "cpu"
    assert torch.from_dlpack(torch.ones(2), device="cuda").device == x.device
    raises(BufferError, torch.from_dlpack, torch.ones(2, device="cuda", requires_grad=True))


def check_dlpack_device(world):
    kinds = {"cuda": 2, "cpu": 1}  # kDLCUDA, kDLCPU, else kDLExtDev
    kind, index = torch.ones(2, device="cuda:0").__dlpack_device__()
    assert (int(kind), index) == (kinds.get(world.shown, 12), 0)
    if world.devices > 1:
        assert torch.ones(2, device="cuda:1").__dlpack_device__()[1] == 1
    assert torch.ones(2).__dlpack_device__() == (1, 0)


@only(backends=("sim",))
def check_numpy_refuses_what_is_on_the_device(world):
    x = torch.ones(2, device="cuda")
    raises(RuntimeError, np.from_dlpack, x)
    raises(TypeError, np.asarray, x)
    assert np.from_dlpack(x.cpu()).tolist() == [1, 1]


def check_memory_is_not_passed_off_as_cuda_memory(world):
    x = torch.ones(2, device="cuda")
    assert not hasattr(x, "__cuda_array_interface__")
    assert "no CUDA memory" in raises(AttributeError, getattr, x, "__cuda_array_interface__")


@only(backends=("sim",))
def check_tensors_of_the_host_s_class_are_on_the_host(world):
    """PyTorch's C++ says the same for CUDA: ``check_legacy_ctor_device`` in tensor_new.cpp."""
    for make in (torch.Tensor, torch.FloatTensor):
        for content in (3, [1.0, 2.0]):
            assert raises(RuntimeError, make, content, device="cuda") == (
                "legacy constructor expects device type: cpu but device type: "
                f"{world.shown} was passed"
            )
    assert torch.ones(1, device="cuda").new(2, device="cuda").device == world.device()


def check_shared_memory(world):
    x = torch.ones(3, device="cuda").share_memory_()
    assert x.is_shared()
    assert x.tolist() == [1, 1, 1]
    torch.nn.Linear(2, 2).cuda().share_memory()


def check_data_parallel(world):
    model = torch.nn.DataParallel(torch.nn.Linear(3, 2)).cuda()
    result = model(torch.ones(4, 3, device="cuda"))
    assert (result.shape, result.device) == ((4, 2), world.device())
    result.sum().backward()
    assert model.module.weight.grad.abs().sum().item() > 0
    assert list(model.state_dict()) == ["module.weight", "module.bias"]


def check_device_mesh(world):
    from torch.distributed.device_mesh import init_device_mesh

    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0", "RANK": "0", "WORLD_SIZE": "1"}
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("nccl", store=store, rank=0, world_size=1)
    try:
        mesh = init_device_mesh("cuda", (1,))
        assert mesh.size() == 1
        total = torch.ones(2, device="cuda")
        torch.distributed.all_reduce(total, group=mesh.get_group())
        assert total.tolist() == [1, 1]
        torch.distributed.barrier(device_ids=[0])
    finally:
        torch.distributed.destroy_process_group()


def check_profiler(world):
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities, record_shapes=True) as profile:
        torch.mm(torch.ones(4, 4, device="cuda"), torch.ones(4, 4, device="cuda"))
        torch.cuda.synchronize()
    names = {event.key for event in profile.key_averages()}
    assert "aten::mm" in names
    assert profile.key_averages().table(sort_by="cuda_time_total")


def check_memory_history_files(world):
    torch.cuda.memory._record_memory_history(max_entries=10)
    path = f"/tmp/cuda-morph-snapshot-{os.getpid()}.pickle"
    torch.cuda.memory._dump_snapshot(path)
    with open(path, "rb") as file:  # noqa: PTH123
        snapshot = pickle.load(file)
    os.unlink(path)  # noqa: PTH108
    assert set(snapshot) >= {"segments", "device_traces"}
    torch.cuda.memory._record_memory_history(enabled=None)


def check_safe_pickles_of_random_state(world):
    buffer = io.BytesIO()
    torch.save({"rng": torch.cuda.get_rng_state_all()}, buffer)
    buffer.seek(0)
    torch.cuda.set_rng_state_all(torch.load(buffer, map_location="cpu")["rng"])


def check_checkpointing_keeps_device_states(world):
    from torch.utils.checkpoint import checkpoint, get_device_states, set_device_states

    x = torch.ones(8, device="cuda", requires_grad=True)
    y = checkpoint(lambda v: torch.nn.functional.dropout(v * 2, 0.5), x, use_reentrant=False)
    y.sum().backward()
    assert x.grad.tolist() == [2 * (value > 0) * 1.0 * 2 for value in y.tolist()]
    devices, states = get_device_states(x)
    set_device_states(devices, states)


def check_internals_that_programs_use(world):
    called = []
    torch.cuda._lazy_call(lambda: called.append(1))
    assert called == [1]
    assert torch.cuda.default_generators[0].device.type == world.shown
    state = torch.cuda.random.get_rng_state(torch.device("cuda:0"))
    assert state.dtype == torch.uint8
    assert torch.cuda.nccl.version() == (0, 0, 0)
    assert torch.cuda._is_compiled() is True
    assert torch.cuda._is_in_bad_fork() is False


def check_record_stream(world):
    x = torch.ones(4, device="cuda")
    x.record_stream(torch.cuda.current_stream())
    x.record_stream(torch.cuda.Stream())
    with torch.cuda.stream(stream=torch.cuda.Stream()):
        x.record_stream(torch.cuda.current_stream())
    assert x.tolist() == [1, 1, 1, 1]


def check_optimizers_ask_the_accelerator(world):
    model = torch.nn.Linear(2, 2).cuda()
    for make in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
        optimizer = make(model.parameters(), lr=0.1)
        model(torch.ones(1, 2, device="cuda")).sum().backward()
        before = model.weight.detach().clone()
        optimizer.step()
        optimizer.zero_grad()
        assert not torch.equal(before, model.weight)


def check_the_accelerator_is_found_by_its_neutral_name(world):
    if world.backend == "sim":
        assert torch.accelerator.is_available()
        assert torch.accelerator.current_accelerator().type == world.shown
        assert torch.accelerator.device_count() == world.devices
