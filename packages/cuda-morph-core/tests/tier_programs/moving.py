"""Moving tensors, modules and storages."""

from __future__ import annotations

import copy
import pickle

import torch
from torch import nn
from world import declared_limit, only, raises


def check_cuda_without_arguments(world):
    moved = torch.ones(3).cuda()
    assert moved.device == world.device()
    assert moved.tolist() == [1, 1, 1]


def check_cuda_spellings_of_the_first_device(world):
    for device in (None, 0, "cuda", "cuda:0", torch.device("cuda"), torch.device("cuda", 0)):
        assert torch.ones(2).cuda(device).device == world.device(), device
        assert torch.ones(2).cuda(device=device).device == world.device(), device


@only(backends=("sim",))
def check_cuda_spellings_of_the_second_device(world):
    for device in (1, "cuda:1", torch.device("cuda:1"), torch.device("cuda", 1)):
        assert torch.ones(2).cuda(device).device == world.device(1), device


def check_cuda_beyond_the_last_device(world):
    raises(RuntimeError, torch.ones(2).cuda, 7)


def check_pinned_memory(world):
    value = torch.arange(6.0)
    pinned = value.pin_memory()
    assert not value.is_pinned()
    assert pinned.is_pinned()
    assert pinned[2:4].is_pinned()
    assert pinned.pin_memory() is pinned
    assert not (pinned + 1).is_pinned()
    assert torch.equal(pinned, value)
    assert pinned.cuda(non_blocking=True).device == world.device()
    assert nn.utils.rnn.pack_sequence([value]).pin_memory().is_pinned()
    assert value.untyped_storage().pin_memory().is_pinned()


@declared_limit("refuse pin_memory=True", backends=("cpu",))
def check_pinned_memory_from_the_start(world):
    assert torch.empty(2, pin_memory=True).is_pinned()


def check_cuda_options(world):
    image = torch.ones(1, 3, 4, 4)
    assert image.cuda(non_blocking=True).device == world.device()
    assert image.cuda("cuda", True).device == world.device()
    last = image.cuda(memory_format=torch.channels_last)
    assert last.is_contiguous(memory_format=torch.channels_last)


def check_cuda_refuses_what_is_no_device(world):
    raises(TypeError, torch.ones(1).cuda, True)
    raises(TypeError, torch.ones(1).cuda, 1.5)
    raises(TypeError, torch.ones(1).cuda, devise="cuda")
    raises(RuntimeError, torch.ones(1).cuda, "cuda:x")


def check_cuda_returns_the_same_tensor_when_it_is_there(world):
    there = torch.ones(1, device="cuda")
    assert there.cuda() is there
    assert there.to("cuda") is there


def check_to_spellings(world):
    value = torch.ones(2)
    other = torch.ones(1, device="cuda", dtype=torch.float64)
    moved = (
        value.to("cuda"),
        value.to("cuda:0"),
        value.to(torch.device("cuda")),
        value.to(device="cuda"),
        value.to("cuda", non_blocking=True),
        value.to("cuda", torch.float64),
        value.to(device="cuda", dtype=torch.float64, copy=True),
        value.to("cuda", torch.float64, True, True),
        value.to(other),
    )
    assert {tensor.device for tensor in moved} == {world.device()}
    assert [tensor.dtype for tensor in moved[5:]] == [torch.float64] * 4


def check_to_without_a_device(world):
    assert torch.ones(1).to(torch.float64).dtype == torch.float64
    assert torch.ones(1).to(dtype=torch.int32).device.type == "cpu"


def check_and_back(world):
    there = torch.ones(2, device="cuda")
    assert there.cpu().device.type == "cpu"
    assert there.to("cpu").tolist() == [1, 1]
    assert torch.equal(there.cpu().cuda(), there)


def check_is_cuda(world):
    assert torch.ones(1, device="cuda").is_cuda is True
    assert nn.Parameter(torch.ones(1, device="cuda")).is_cuda is True
    assert torch.ones(1).is_cuda is (world.backend == "cpu")
    assert torch.ones(1, device="meta").is_cuda is False


def check_gradients_cross_the_move(world):
    weight = torch.ones(2, requires_grad=True)
    (weight.cuda() * 3).sum().backward()
    assert weight.grad.tolist() == [3, 3]
    assert weight.grad.device.type == "cpu"


def check_module_moves(world):
    for move in (
        lambda module: module.cuda(),
        lambda module: module.cuda(0),
        lambda module: module.cuda("cuda:0"),
        lambda module: module.cuda(torch.device("cuda")),
        lambda module: module.to("cuda"),
        lambda module: module.to(device="cuda"),
        lambda module: module.to(torch.device("cuda")),
        lambda module: module.to_empty(device="cuda"),
    ):
        module = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
        assert move(module) is module
        tensors = [*module.parameters(), *module.buffers()]
        assert {tensor.device for tensor in tensors} == {world.device()}
        assert all(isinstance(value, nn.Parameter) for value in module.parameters())


def check_module_to_with_dtype(world):
    module = nn.Linear(2, 2).to("cuda", torch.float64)
    assert (module.weight.device, module.weight.dtype) == (world.device(), torch.float64)


def check_module_constructor(world):
    layer = nn.Linear(2, 3, device="cuda", dtype=torch.float64)
    assert layer(torch.ones(1, 2, device="cuda", dtype=torch.float64)).device == world.device()


def check_storages(world):
    assert torch.UntypedStorage(3, device="cuda").device == world.device()
    assert torch.ones(3, device="cuda").untyped_storage().device == world.device()
    assert torch.ones(3).untyped_storage().cuda().device == world.device()
    assert torch.ones(3).untyped_storage().to(device="cuda").device == world.device()


def check_typed_tensor_classes(world):
    made = torch.cuda.FloatTensor([1.0, 2.0])
    assert (made.device, made.dtype) == (world.device(), torch.float32)
    moved = torch.ones(2).type("torch.cuda.DoubleTensor")
    assert (moved.device, moved.dtype) == (world.device(), torch.float64)


def check_new_methods(world):
    here, there = torch.ones(2), torch.ones(2, device="cuda")
    for value, keywords in ((here, {"device": "cuda"}), (there, {})):
        made = (
            value.new_empty(2, **keywords),
            value.new_empty_strided((2,), (1,), **keywords),
            value.new_zeros(2, **keywords),
            value.new_ones((2,), dtype=torch.int64, **keywords),
            value.new_full((2,), 3.0, **keywords),
            value.new_tensor([1.0], **keywords),
        )
        assert {tensor.device for tensor in made} == {world.device()}, made
    assert made[3].dtype == torch.int64


def check_tensors_can_be_pickled_and_copied(world):
    there = torch.arange(3, device="cuda")
    for twin in (pickle.loads(pickle.dumps(there)), copy.deepcopy(there), there.clone()):
        assert twin.device == there.device
        assert twin.tolist() == [0, 1, 2]
        assert twin.data_ptr() != there.data_ptr()


def check_callers_arguments_are_not_changed(world):
    keywords = {"device": "cuda", "dtype": torch.float64}
    torch.zeros(2, **keywords)
    torch.ones(2).to(**keywords)
    torch.ones(2).new_zeros(2, **keywords)
    nn.Linear(2, 2, **keywords)
    assert keywords == {"device": "cuda", "dtype": torch.float64}


def check_dlpack(world):
    if world.shown == "sim":
        return  # PyTorch's own Tensor.__dlpack_device__ knows no renamed out-of-tree device
    there = torch.arange(3, device="cuda")
    twin = torch.from_dlpack(there)
    assert (twin.device, twin.tolist()) == (there.device, [0, 1, 2])


def check_computing(world):
    left = torch.arange(4.0).reshape(2, 2).cuda()
    right = torch.eye(2, device="cuda")
    result = left @ right + 1
    assert result.device == world.device()
    assert result.tolist() == [[1, 2], [3, 4]]
