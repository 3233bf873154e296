"""Custom operators with kernels for CUDA, registered in every way that torch.library knows."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

SPACE = "cm_custom"
library = torch.library.Library(SPACE, "DEF")
library.define("early(Tensor x) -> Tensor")
library.impl("early", lambda x: x + 10, "CUDA")


@torch.library.custom_op(f"{SPACE}::early_op", mutates_args=(), device_types="cuda")
def early_op(x: Tensor) -> Tensor:
    return x + 20


@torch.library.custom_op(f"{SPACE}::early_factory", mutates_args=(), device_types="cuda")
def early_factory(length: int, device: torch.device) -> Tensor:
    return torch.full((length,), 5.0, device=device)


def kernel_of_nvidia(*_args):
    raise AssertionError("PyTorch's kernel for NVIDIA cards was called")


try:
    from torch._native import registry
except ImportError:
    pass  # an older PyTorch, which has none
else:
    registry._install_aten_override("bmm", "CUDA", kernel_of_nvidia)


def ones(*, grad=False):
    return torch.ones(2, device="cuda", requires_grad=grad)


def check_registered_before_activation(world):
    assert torch.ops.cm_custom.early(ones()).tolist() == [11, 11]
    assert early_op(ones()).tolist() == [21, 21]
    assert early_factory(2, torch.device("cuda")).tolist() == [5, 5]


def check_kernels_of_pytorch_itself_stay_with_cuda(world):
    x = torch.ones(1, 2, 2, device="cuda")
    assert torch.bmm(x, x).tolist() == [[[2, 2], [2, 2]]]
    late = torch.library.Library("aten", "IMPL", "CUDA")
    kernel_of_nvidia.__module__ = "torch._native.ops"
    late.impl("baddbmm", kernel_of_nvidia)
    assert torch.baddbmm(x, x, x).tolist() == [[[3, 3], [3, 3]]]
    late._destroy()


def check_library_impl(world):
    library.define("late(Tensor x) -> Tensor")
    library.impl("late", lambda x: x + 1, "CUDA")
    assert torch.ops.cm_custom.late(ones()).tolist() == [2, 2]


def check_library_with_a_key(world):
    library.define("keyed(Tensor x) -> Tensor")
    keyed = torch.library.Library(SPACE, "IMPL", "CUDA")
    keyed.impl("keyed", lambda x: x + 2)
    assert torch.ops.cm_custom.keyed(ones()).tolist() == [3, 3]
    keyed._destroy()
    try:
        torch.ops.cm_custom.keyed(ones())
    except NotImplementedError:
        return
    raise AssertionError("the kernel outlived its library")


def check_impl_by_device(world):
    torch.library.define(f"{SPACE}::by_device", "(Tensor x) -> Tensor")
    torch.library.impl(f"{SPACE}::by_device", "cuda")(lambda x: x + 3)
    assert torch.ops.cm_custom.by_device(ones()).tolist() == [4, 4]


def check_kernels_for_both(world):
    expected = [1, 1] if world.backend == "cpu" else [2, 2]
    for order in (("CPU", "CUDA"), ("CUDA", "CPU")):
        name = "both_" + "_".join(order)
        library.define(f"{name}(Tensor x) -> Tensor")
        kernels = {"CPU": lambda x: x + 0, "CUDA": lambda x: x * 2}
        for key in order:
            library.impl(name, kernels[key], key)
        operator = getattr(torch.ops.cm_custom, name)
        assert operator(ones()).tolist() == expected, order
        assert operator(torch.ones(2)).tolist() == [1, 1], order


def check_custom_op_with_kernels_for_both(world):
    @torch.library.custom_op(f"{SPACE}::both_op", mutates_args=(), device_types="cpu")
    def both_op(x: Tensor) -> Tensor:
        return x + 0

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        both_op.register_kernel("cuda", lambda x: x * 2)
    assert both_op(torch.ones(2)).tolist() == [1, 1]
    assert both_op(ones()).tolist() == ([1, 1] if world.backend == "cpu" else [2, 2])


def make_differentiable():
    @torch.library.custom_op(f"{SPACE}::triple", mutates_args=(), device_types="cuda")
    def triple(x: Tensor) -> Tensor:
        assert x.is_cuda
        return x * 3

    triple.register_fake(torch.empty_like)
    triple.register_autograd(lambda _context, gradient: gradient * 3)
    return triple


def check_autograd_and_fake(world):
    triple = make_differentiable()
    value = ones(grad=True)
    triple(value).sum().backward()
    assert value.grad.tolist() == [3, 3]
    torch.library.opcheck(triple, (ones(),))


def check_compiled(world):
    triple = make_differentiable()
    for backend in ("eager", "aot_eager", "inductor"):
        torch._dynamo.reset()
        value = ones(grad=True)
        result = torch.compile(lambda x: triple(x) + 1, backend=backend, fullgraph=True)(value)
        assert result.tolist() == [4, 4], backend
        assert result.device == value.device
        result.sum().backward()
        assert value.grad.tolist() == [3, 3], backend


def check_mutating_operator_compiled(world):
    @torch.library.custom_op(f"{SPACE}::fill", mutates_args={"x"}, device_types="cuda")
    def fill(x: Tensor) -> None:
        x.fill_(7)

    def function(x):
        y = x * 2
        fill(y)
        return y + 1

    for backend in ("aot_eager", "inductor"):
        torch._dynamo.reset()
        assert torch.compile(function, backend=backend)(ones()).tolist() == [8, 8], backend
