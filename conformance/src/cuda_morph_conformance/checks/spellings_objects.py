"""Generators, storages, copies, pickles and subclasses on the device."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING, Any

from cuda_morph_conformance.expectations import require_equal, require_on, shown_type
from cuda_morph_conformance.registry import check, require
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from cuda_morph_conformance.subject import Subject

_STRING = ("device.string",)


@check("CM-STR-040", level=Level.RUNS, requires=("rng.generator",), since="1.0", devices=1)
def generators_take_all_spellings(subject: Subject) -> None:
    """torch.Generator MUST take cuda in every spelling, and be of PyTorch's own class.

    Fix: register a generator factory for the device (``GetGeneratorPrivate``).
    """
    import torch

    index = torch.cuda.current_device()
    for device in ("cuda", f"cuda:{index}", torch.device("cuda"), torch.device("cuda", index)):
        for generator in (torch.Generator(device), torch.Generator(device=device)):
            require(isinstance(generator, torch.Generator), f"it is {type(generator)}")
            require_equal(generator.device.type, shown_type(subject), f"Generator({device!r})")
            drawn = torch.rand(2, device="cuda", generator=generator.manual_seed(1))
            require_on(drawn, subject, f"rand with Generator({device!r})", index=index)
    require_equal(torch.Generator().device.type, "cpu", "Generator()")


@check("CM-STR-041", level=Level.RUNS, requires=_STRING, since="1.0", devices=1)
def storages_are_made_and_moved(subject: Subject) -> None:
    """Untyped storages MUST be made on the device and move to and from it with their bytes.

    Fix: register the device's allocator, and ``resize_`` and ``copy_`` of its storages.
    """
    import torch

    storage = torch.UntypedStorage(8, device="cuda")
    require_equal(
        (storage.nbytes(), storage.device.type), (8, shown_type(subject)), "a new storage"
    )
    filled = torch.empty(0, dtype=torch.uint8, device="cuda").set_(storage.fill_(3))
    require_equal(filled.tolist(), [3] * 8, "bytes of a filled storage")
    host = torch.arange(3, dtype=torch.uint8).untyped_storage()
    there = host.cuda()
    require_equal(there.device.type, shown_type(subject), "device of storage.cuda()")
    require_equal(list(there.cpu()), [0, 1, 2], "bytes after a round trip")


@check("CM-STR-042", level=Level.RUNS, requires=_STRING, since="1.0", devices=1)
def tensors_survive_copies(subject: Subject) -> None:
    """Device tensors, parameters and modules MUST survive deepcopy, clone and pickle on the device.

    Fix: register ``clone`` and ``set_.source_Storage``, which rebuild a tensor from its storage.
    """
    import torch

    tensor = torch.arange(6, device="cuda").reshape(2, 3).t()
    index = torch.cuda.current_device()
    for what, twin in {
        "deepcopy": copy.deepcopy(tensor),
        "clone": tensor.clone(),
        "pickle": pickle.loads(pickle.dumps(tensor)),  # noqa: S301 - made in this line
    }.items():
        require_on(twin, subject, what, index=index)
        require_equal(twin.tolist(), tensor.tolist(), f"values after {what}")
        require_equal(twin.stride(), tensor.stride(), f"strides after {what}")
        require(twin.data_ptr() != tensor.data_ptr(), f"{what} shares memory")
    parameter = copy.deepcopy(torch.nn.Parameter(torch.ones(2, device="cuda")))
    require_on(parameter, subject, "deepcopy of a parameter", index=index)
    require(parameter.requires_grad and parameter.is_leaf, "deepcopy of a parameter is no leaf")


@check("CM-STR-043", level=Level.RUNS, requires=_STRING, since="1.0", devices=1)
def views_share_memory(_subject: Subject) -> None:
    """Views of a device tensor MUST share its memory, and writing through one MUST be seen.

    Fix: make view operators change strides and offsets only, on the same storage.
    """
    import torch

    base = torch.zeros(4, 4, device="cuda")
    views = {
        "row": base[1],
        "column": base[:, 2],
        "diagonal": base.diagonal(),
        "flat": base.view(-1),
    }
    for number, view in enumerate(views.values(), start=1):
        view.add_(number)
    same = {what: view.untyped_storage().data_ptr() for what, view in views.items()}
    require(set(same.values()) == {base.untyped_storage().data_ptr()}, "a view has its own memory")
    expected = torch.full((4, 4), 4.0)
    expected[1] += 1
    expected[:, 2] += 2
    expected.diagonal().add_(3)
    require_equal(base.tolist(), expected.tolist(), "the base after writing through its views")


@check("CM-STR-044", level=Level.RUNS, requires=_STRING, since="1.0", devices=1)
def function_modes_see_pytorchs_functions(subject: Subject) -> None:
    """TorchFunctionMode and tensor subclasses MUST see PyTorch's own functions being called.

    Fix: nothing in the plugin; core must not wrap ``torch.zeros`` and its like.
    """
    import torch
    from torch.overrides import TorchFunctionMode

    seen: list[object] = []

    class Spy(TorchFunctionMode):  # type: ignore[misc, unused-ignore]
        def __torch_function__(
            self, func: Any, _types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(func)
            return func(*args, **(kwargs or {}))

    class Tagged(torch.Tensor):  # type: ignore[misc, unused-ignore]
        pass

    with Spy():
        made = torch.zeros(2, device="cuda")
    require(seen[:1] == [torch.zeros], f"the mode saw {seen}")
    require_on(made, subject, "zeros under a mode", index=torch.cuda.current_device())
    moved = torch.ones(2).as_subclass(Tagged).to("cuda")
    require(type(moved) is Tagged, f"the moved subclass is a {type(moved)}")
    require(moved.is_cuda, "the moved subclass is not on the device")


@check("CM-STR-045", level=Level.RUNS, requires=_STRING, since="1.0", devices=1)
def copies_into_tensors_work(_subject: Subject) -> None:
    """copy_ MUST convert between devices, dtypes, strides and broadcast shapes.

    Fix: let ``_copy_from`` handle a source of another dtype, shape or stride.
    """
    import torch

    source = torch.arange(6).reshape(2, 3)
    target = torch.zeros(3, 2, device="cuda", dtype=torch.float32).t()
    target.copy_(source, non_blocking=True)
    torch.cuda.synchronize()
    require_equal(target.tolist(), [[0, 1, 2], [3, 4, 5]], "an int64 source in a float32 view")
    target.copy_(torch.tensor([7, 8, 9]))
    require_equal(target.tolist(), [[7, 8, 9], [7, 8, 9]], "a source that is broadcast")
    host = torch.zeros(2, 3, dtype=torch.int16)
    host.copy_(target)
    require_equal(host.tolist(), [[7, 8, 9], [7, 8, 9]], "a device source in a CPU tensor")


@check("CM-STR-046", level=Level.RUNS, requires=_STRING, since="1.0", devices=1)
def device_modules_are_found(subject: Subject) -> None:
    """torch.get_device_module MUST find a module with the functions of torch.cuda for the device.

    Fix: register the device module with ``torch._register_device_module``.
    """
    import torch

    there = torch.ones(1, device="cuda").device
    module = torch.get_device_module(there)
    for name in ("current_device", "device_count", "is_available", "synchronize"):
        if shown_type(subject) != "cpu" or name != "device_count":
            require(callable(getattr(module, name, None)), f"{module.__name__} has no {name}")
    if shown_type(subject) != "cpu":
        require_equal(module.device_count(), subject.device_count, "its device_count()")
        accelerator = torch.accelerator.current_accelerator()
        kind = accelerator.type if accelerator is not None else None
        require_equal(kind, shown_type(subject), "torch.accelerator's device type")
