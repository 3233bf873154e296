"""Tensors on devices: moving them, asking where they are, and not mixing them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuda_morph_conformance.expectations import (
    require_equal,
    require_on,
    require_raises,
    shown,
    shown_type,
)
from cuda_morph_conformance.registry import check, require
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from torch import Tensor

    from cuda_morph_conformance.subject import Subject

_METHODS = ("device.tensor_methods",)


@check("CM-DEV-030", level=Level.RUNS, requires=_METHODS, since="1.0", devices=1)
def cuda_takes_all_spellings(subject: Subject) -> None:
    """Tensor.cuda MUST take nothing, None, an int, a string and a torch.device, and keep values.

    Fix: register ``_copy_from`` for copies from the CPU to the device.
    """
    import torch

    with torch.cuda.device(0):
        for device in (None, 0, "cuda", "cuda:0", torch.device("cuda"), torch.device("cuda", 0)):
            moved = torch.arange(5).cuda(device)
            require_on(moved, subject, f".cuda({device!r})")
            require_equal(moved.tolist(), [0, 1, 2, 3, 4], f"values after .cuda({device!r})")
            require_on(torch.ones(1).cuda(device=device), subject, f".cuda(device={device!r})")
        require_on(torch.ones(1).cuda(), subject, ".cuda()")


@check("CM-DEV-031", level=Level.RUNS, requires=_METHODS, since="1.0", devices=1)
def cuda_takes_options(subject: Subject) -> None:
    """Tensor.cuda MUST take non_blocking and memory_format, and give what they ask for.

    Fix: let the copy kernel respect the destination's strides and its ``non_blocking`` argument.
    """
    import torch

    image = torch.arange(24.0).reshape(1, 2, 3, 4)
    last = image.cuda(memory_format=torch.channels_last)
    require(last.is_contiguous(memory_format=torch.channels_last), f"strides {last.stride()}")
    for what, moved in (
        ("memory_format=", last),
        ("non_blocking=True", image.cuda(non_blocking=True)),
        ("a second position", image.cuda("cuda", True)),
    ):
        require_on(moved, subject, f".cuda with {what}")
        torch.cuda.synchronize()
        require(torch.equal(moved.cpu(), image), f".cuda with {what} changed values")


@check("CM-DEV-032", level=Level.RUNS, requires=_METHODS, since="1.0", devices=1)
def moving_in_place_is_free(_subject: Subject) -> None:
    """Moving a tensor to where it already is MUST return the same tensor, unless a copy is asked.

    Fix: compare devices after filling in the current index, so that cuda and cuda:0 are the same.
    """
    import torch

    there = torch.ones(2, device="cuda")
    index = torch.cuda.current_device()
    require(there.cuda() is there, ".cuda() made a copy")
    require(there.to("cuda") is there, ".to('cuda') made a copy")
    require(there.to(there.device) is there, ".to(its own device) made a copy")
    require(there.cuda(index) is there, ".cuda(index) made a copy")
    require(there.to("cuda", copy=True) is not there, ".to(copy=True) made no copy")


@check("CM-DEV-033", level=Level.RUNS, requires=_METHODS, since="1.0", devices=1)
def is_cuda_tells_the_truth(subject: Subject) -> None:
    """Tensor.is_cuda MUST be True for device tensors and parameters, and False for others.

    Fix: nothing in the plugin; core answers by the device type of ``DeviceMapping.target``.
    """
    import torch

    there = torch.ones(2, 2, device="cuda")
    for what, tensor in {
        "a tensor": there,
        "a view": there[0].t(),
        "a result": there + 1,
        "a parameter": torch.nn.Parameter(there),
    }.items():
        require(tensor.is_cuda is True, f"is_cuda of {what} is {tensor.is_cuda}")
    require(torch.ones(1, device="meta").is_cuda is False, "is_cuda of a meta tensor")
    if shown_type(subject) != "cpu":
        require(there.cpu().is_cuda is False, "is_cuda of a CPU tensor")
        require(there.is_cpu is False, "is_cpu of a device tensor")


@check("CM-DEV-034", level=Level.RUNS, requires=_METHODS, since="1.0", devices=1)
def get_device_gives_the_index(subject: Subject) -> None:
    """Tensor.get_device MUST give the tensor's index, with which torch.cuda.device goes there.

    Fix: create tensors with a device that has an index, never with a bare device type.
    """
    import torch

    for index in range(subject.device_count):
        there = torch.ones(2, device=f"cuda:{index}")
        if there.device.index is not None:  # the CPU has none, and answers -1 for "no change"
            require_equal(there.get_device(), index, f"get_device() of a tensor on cuda:{index}")
        with torch.cuda.device(there.get_device()):
            require_equal(torch.cuda.current_device(), index, "the device it selects")


@check("CM-DEV-035", level=Level.RUNS, requires=_METHODS, since="1.0", devices=1)
def to_takes_all_spellings(subject: Subject) -> None:
    """Tensor.to MUST take devices, dtypes, other tensors and options in all of PyTorch's forms.

    Fix: register ``_to_copy`` or ``_copy_from`` with conversion between dtypes.
    """
    import torch

    value, other = torch.ones(3), torch.zeros(1, device="cuda", dtype=torch.float16)
    plain = {
        "'cuda'": value.to("cuda"),
        "device=": value.to(device=torch.device("cuda")),
        "non_blocking=": value.to("cuda", non_blocking=True),
    }
    halves = {
        "device and dtype": value.to("cuda", torch.float16),
        "four positions": value.to("cuda", torch.float16, True, True),
        "keywords": value.to(device="cuda", dtype=torch.float16, copy=True),
        "another tensor": value.to(other),
    }
    for what, moved in {**plain, **halves}.items():
        require_on(moved, subject, f".to with {what}", index=torch.cuda.current_device())
        require_equal(moved.sum().item(), 3.0, f"sum after .to with {what}")
    require(all(one.dtype == torch.float16 for one in halves.values()), "a dtype was lost")
    require(value.to(torch.float16).device.type == "cpu", ".to(dtype) left the CPU")


@check("CM-DEV-036", level=Level.RUNS, requires=_METHODS, since="1.0", devices=1)
def round_trips_are_exact(_subject: Subject) -> None:
    """A tensor MUST come back from the device bit for bit, whatever its shape and strides.

    Fix: handle strides, zero dimensions and empty tensors in the copy kernels of both directions.
    """
    import torch

    odd = torch.tensor([float("nan"), float("inf"), -0.0, 1e-45, 3.4e38, -1.5])
    table = torch.arange(24).reshape(4, 6)
    for what, value in {
        "special floats": odd,
        "a transposed view": table.t(),
        "a strided slice": table[1:, ::2],
        "an expanded tensor": torch.tensor([[7], [8]]).expand(2, 3),
        "an empty tensor": torch.empty(0, 3),
        "a number": torch.tensor(5),
    }.items():
        back = value.cuda().cpu()
        require_equal(back.shape, value.shape, f"shape of {what}")
        same = torch.equal(_bits(back), _bits(value))
        require(same, f"{what} came back as {str(back.tolist())[:120]}")
    require(
        torch.equal(table.cuda().t()[2:4].cpu(), table.t()[2:4]), "a device view came back wrong"
    )


@check("CM-DEV-037", level=Level.RUNS, requires=_METHODS, since="1.0", devices=1)
def cuda_refuses_what_is_no_device(_subject: Subject) -> None:
    """Tensor.cuda MUST raise for values that name no device, and for unknown arguments.

    Fix: nothing in the plugin; core checks the argument before it asks the accelerator.
    """
    import torch

    value = torch.ones(1)
    for wrong in (True, 1.5, [0]):
        require_raises(TypeError, value.cuda, wrong, what=f".cuda({wrong!r})")
    require_raises(RuntimeError, value.cuda, "cuda:x", what=".cuda('cuda:x')")
    require_raises(TypeError, lambda: value.cuda(devise="cuda"), what=".cuda(devise=)")


@check("CM-DEV-038", level=Level.RUNS, requires=_METHODS, since="1.0", devices=1)
def tensors_print(subject: Subject) -> None:
    """Printing a device tensor MUST show its values and its device.

    Fix: register ``item``, ``_local_scalar_dense`` and masked selection, which printing uses.
    """
    import torch

    where = shown(subject, torch.cuda.current_device())
    suffix = "" if where == "cpu" else f", device='{where}'"
    require_equal(
        repr(torch.tensor([1.5, 2], device="cuda")), f"tensor([1.5000, 2.0000]{suffix})", "repr"
    )
    require_equal(f"{torch.tensor(3, device='cuda')}", "3", "format of a number")
    long = repr(torch.arange(5000, device="cuda"))
    require("..." in long and "4999" in long, f"a long tensor prints as {long[:100]}")


@check("CM-DEV-039", level=Level.RUNS, requires=_METHODS, since="1.0", devices=1)
def results_stay_on_the_device(subject: Subject) -> None:
    """Results of operators on device tensors MUST be on the device, without a detour being seen.

    Fix: allocate outputs with the options of the input; a fallback to the CPU must copy back.
    """
    import torch

    x = torch.arange(6.0, device="cuda").reshape(2, 3)
    index = torch.cuda.current_device()
    for what, result in {
        "arithmetic": x * 2 + 1,
        "a reduction": x.sum(0),
        "comparison": x > 2,  # noqa: PLR2004 - any number
        "indexing": x[x > 2],  # noqa: PLR2004
        "a matrix product": x @ x.t(),
        "concatenation": torch.cat([x, x]),
        "where": torch.where(x > 2, x, 0.0),  # noqa: PLR2004
        "sorting": x.sort(descending=True).values,
        "nonzero": x.nonzero(),
        "new_zeros": x.new_zeros(2),
    }.items():
        require_on(result, subject, what, index=index)


@check("CM-DEV-040", level=Level.RUNS, requires=("device.mismatch",), since="1.0", devices=1)
def mixing_with_the_cpu_raises(subject: Subject) -> None:
    """Mixing device and CPU tensors in one operation MUST raise a RuntimeError naming both devices.

    Fix: let kernels check devices (PyTorch's code generator does), before touching memory.
    """
    import torch

    there, here = torch.ones(3, 3, device="cuda"), torch.ones(3, 3)
    for what, operation in {"add": torch.add, "matmul": torch.matmul, "cat": _joined}.items():
        text = require_raises(RuntimeError, operation, there, here, what=f"{what} of two devices")
        named = shown_type(subject) in text and "cpu" in text
        require(named, f"{what}: the error does not name both devices: {text[:200]}")


@check("CM-DEV-041", level=Level.RUNS, requires=_METHODS, since="1.0", devices=1)
def numbers_mix(subject: Subject) -> None:
    """Python numbers and CPU tensors without dimensions MUST mix with device tensors.

    Fix: accept wrapped numbers and zero-dimensional CPU tensors in binary kernels.
    """
    import torch

    there = torch.tensor([1.0, 2.0], device="cuda")
    for what, result in {
        "a Python number": 2 * there,
        "a CPU number": there * torch.tensor(2.0),
        "a CPU number first": torch.tensor(2.0) * there,
    }.items():
        require_on(result, subject, what, index=torch.cuda.current_device())
        require_equal(result.tolist(), [2.0, 4.0], what)


@check(
    "CM-DEV-042",
    level=Level.RUNS,
    requires=("device.mismatch", "device.multiple"),
    since="1.0",
    devices=2,
)
def two_devices_do_not_mix(_subject: Subject) -> None:
    """Tensors of two accelerators in one operation MUST raise a RuntimeError that names both.

    Fix: compare device indices in kernels, not only device types.
    """
    import torch

    first, second = torch.ones(3, device="cuda:0"), torch.ones(3, device="cuda:1")
    text = require_raises(RuntimeError, torch.add, first, second, what="add of two devices")
    require(":0" in text and ":1" in text, f"the error does not name both: {text[:200]}")


@check(
    "CM-DEV-043",
    level=Level.RUNS,
    requires=("device.peer_copy", "device.multiple"),
    since="1.0",
    devices=2,
)
def tensors_are_copied_between_devices(subject: Subject) -> None:
    """Copies between two accelerators MUST keep values, and leave the current device alone.

    Fix: copy through the host where the cards have no direct link.
    """
    import torch

    before = torch.cuda.current_device()
    first = torch.arange(6, device="cuda:0").reshape(2, 3)
    second = first.t().to("cuda:1")
    require_on(second, subject, ".to('cuda:1')", index=1)
    second += 1
    require_equal(first.tolist(), [[0, 1, 2], [3, 4, 5]], "the source after a change of the copy")
    first.copy_(second.t())
    require_equal(first.tolist(), [[1, 2, 3], [4, 5, 6]], "the source after copying back")
    require_on(torch.ones(1, device="cuda:1") * 2, subject, "a product on cuda:1", index=1)
    require_equal(torch.cuda.current_device(), before, "the current device afterwards")
    access = torch.cuda.can_device_access_peer(0, 1)
    require(isinstance(access, bool), f"can_device_access_peer is {access!r}")


def _bits(value: Tensor) -> Tensor:
    import torch

    return value.contiguous().view(torch.int32) if value.is_floating_point() else value


def _joined(first: Tensor, second: Tensor) -> Tensor:
    import torch

    return torch.cat([first, second])
