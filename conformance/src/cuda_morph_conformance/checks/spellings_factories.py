"""Every function of PyTorch that makes a tensor on a device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuda_morph_conformance.expectations import (
    require_equal,
    require_on,
    require_raises,
    same_random_numbers,
)
from cuda_morph_conformance.registry import check, require
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from cuda_morph_conformance.subject import Subject

_STRING = ("device.string",)

FACTORIES: dict[str, tuple[object, ...]] = {
    "arange": (3,),
    "as_tensor": ([1.0],),
    "asarray": ([1.0],),
    "bartlett_window": (4,),
    "blackman_window": (4,),
    "empty": (2,),
    "empty_permuted": ((2, 3), (1, 0)),
    "empty_strided": ((2, 3), (1, 2)),
    "eye": (3,),
    "full": ((2,), 3),
    "hamming_window": (4,),
    "hann_window": (4,),
    "kaiser_window": (4,),
    "linspace": (0, 1, 3),
    "logspace": (0, 1, 3),
    "ones": (2,),
    "scalar_tensor": (2.0,),
    "tensor": ([1, 2],),
    "tril_indices": (3, 3),
    "triu_indices": (3, 3),
    "zeros": (2,),
}
"""Arguments of the functions that give the same numbers everywhere; ``empty*`` have none."""

RANDOM: dict[str, tuple[object, ...]] = {
    "normal": (0.0, 1.0, (4,)),
    "rand": (4,),
    "randint": (9, (4,)),
    "randn": (4,),
    "randperm": (4,),
}

LIKE = "empty_like full_like ones_like rand_like randint_like randn_like zeros_like"
NEW = "new_empty new_empty_strided new_full new_ones new_tensor new_zeros"
_NEW_ARGUMENTS: dict[str, tuple[object, ...]] = {
    "new_empty_strided": ((2,), (1,)),
    "new_full": ((2,), 3),
    "new_tensor": ([1.0, 2.0],),
}


@check("CM-STR-020", level=Level.RUNS, requires=_STRING, since="1.0", devices=1)
def factories_take_strings(subject: Subject) -> None:
    """Every function that makes a tensor MUST take device="cuda" and give the CPU's values there.

    Fix: register the missing kernel; most factories need ``empty.memory_format``,
    ``empty_strided``, ``fill_``, ``arange.start_out``, ``linspace.out`` and ``eye.m_out``.
    """
    import torch

    index = torch.cuda.current_device()
    for name, arguments in FACTORIES.items():
        make = getattr(torch, name)
        here, there = make(*arguments), make(*arguments, device="cuda")
        require_on(there, subject, f"torch.{name}", index=index)
        require_equal(there.dtype, here.dtype, f"dtype of torch.{name}")
        require_equal(there.shape, here.shape, f"shape of torch.{name}")
        require_equal(there.stride(), here.stride(), f"strides of torch.{name}")
        if not name.startswith("empty"):
            close = torch.allclose(there.cpu().double(), here.double(), rtol=1e-4, atol=1e-5)
            require(close, f"torch.{name} gave {there.tolist()}, expected {here.tolist()}")


@check("CM-STR-021", level=Level.RUNS, requires=_STRING, since="1.0", devices=1)
def factories_take_devices_and_indices(subject: Subject) -> None:
    """Every function that makes a tensor MUST take cuda:N, torch.device and no other device then.

    Fix: allocate on the device that is passed, not on the current one.
    """
    import torch

    last = subject.device_count - 1
    with same_random_numbers():
        for name, arguments in {**FACTORIES, **RANDOM}.items():
            make = getattr(torch, name)
            for device in (f"cuda:{last}", torch.device("cuda", last)):
                there = make(*arguments, device=device)
                require_on(there, subject, f"torch.{name}(device={device!r})", index=last)


@check("CM-STR-022", level=Level.RUNS, requires=_STRING, since="1.0", devices=1)
def random_factories_take_strings(subject: Subject) -> None:
    """Every function that draws numbers MUST take device="cuda", and draw them from its range.

    Fix: register ``uniform_``, ``normal_``, ``random_`` and ``randperm.generator_out``.
    """
    import torch

    index = torch.cuda.current_device()
    with same_random_numbers():
        for name, arguments in RANDOM.items():
            there = getattr(torch, name)(*arguments, device="cuda")
            require_on(there, subject, f"torch.{name}", index=index)
            require_equal(there.shape, (4,), f"shape of torch.{name}")
            require(there.isfinite().all().item(), f"torch.{name} gave {there.tolist()}")
        require_equal(sorted(torch.randperm(9, device="cuda").tolist()), list(range(9)), "randperm")
        drawn = torch.rand(1000, device="cuda")
        require(bool(((drawn >= 0) & (drawn < 1)).all()), "rand left [0, 1)")
        whole = torch.randint(3, 6, (1000,), device="cuda")
        require_equal(sorted(set(whole.tolist())), [3, 4, 5], "numbers of randint(3, 6)")


@check("CM-STR-023", level=Level.RUNS, requires=_STRING, since="1.0", devices=1)
def tensors_are_made_from_tensors(subject: Subject) -> None:
    """*_like and new_* MUST follow the tensor's device, or the device they are given.

    Fix: pass the device of the options on in ``empty_like`` and ``new_empty``.
    """
    import torch

    here, there = torch.ones(2), torch.ones(2, device="cuda")
    index = torch.cuda.current_device()
    with same_random_numbers():
        for name in LIKE.split():
            more: tuple[object, ...] = (3,) if name in ("full_like", "randint_like") else ()
            make: Callable[..., Tensor] = getattr(torch, name)
            require_on(make(there, *more), subject, f"{name} of a device tensor", index=index)
            require_on(make(here, *more, device="cuda"), subject, f"{name} to cuda", index=index)
            require_equal(make(there, *more, device="cpu").device.type, "cpu", f"{name} to the CPU")
        for name in NEW.split():
            more = _NEW_ARGUMENTS.get(name, (2,))
            require_on(getattr(there, name)(*more), subject, name, index=index)
            moved = getattr(here, name)(*more, device="cuda")
            require_on(moved, subject, f"{name}(device=)", index=index)


@check("CM-STR-024", level=Level.RUNS, requires=_STRING, since="1.0", devices=1)
def fft_and_windows_take_strings(subject: Subject) -> None:
    """Frequencies of torch.fft and all windows of torch.signal MUST be made on the device.

    Fix: register ``arange``, ``linspace`` and the elementwise functions they are composed of.
    """
    import torch
    from torch.signal import windows

    needed: dict[str, dict[str, Any]] = {
        "general_cosine": {"a": [0.5, 0.5]},
        "general_hamming": {"alpha": 0.5},
    }
    makers = {name: getattr(windows, name) for name in windows.__all__}
    makers |= {"fftfreq": torch.fft.fftfreq, "rfftfreq": torch.fft.rfftfreq}
    for name, make in makers.items():
        options = needed.get(name, {})
        here, there = make(6, **options), make(6, device="cuda", **options)
        require_on(there, subject, name, index=torch.cuda.current_device())
        close = torch.allclose(there.cpu(), here, rtol=1e-4, atol=1e-5)
        require(close, f"{name} gave {there.tolist()}, expected {here.tolist()}")


@check("CM-STR-025", level=Level.RUNS, requires=_STRING, since="1.0", devices=1)
def options_of_factories_survive(subject: Subject) -> None:
    """dtype, requires_grad, memory_format, out and the default dtype MUST be respected.

    Fix: pass all fields of TensorOptions through to the allocation.
    """
    import torch

    index = torch.cuda.current_device()
    made = torch.zeros(2, dtype=torch.float16, device="cuda", requires_grad=True)
    require_equal(
        (made.dtype, made.requires_grad, made.is_leaf), (torch.float16, True, True), "zeros"
    )
    image = torch.empty(1, 2, 3, 4, device="cuda", memory_format=torch.channels_last)
    require(image.is_contiguous(memory_format=torch.channels_last), f"strides {image.stride()}")
    out = torch.empty(2, device="cuda")
    require(torch.ones(2, out=out, device="cuda") is out, "out= returned another tensor")
    require_equal(out.tolist(), [1.0, 1.0], "values written to out=")
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float16)
        half = torch.ones(1, device="cuda")
    finally:
        torch.set_default_dtype(before)
    require_on(half, subject, "ones with another default dtype", index=index)
    require_equal(half.dtype, torch.float16, "dtype with another default dtype")


@check("CM-STR-026", level=Level.RUNS, requires=_STRING, since="1.0", devices=1)
def wrong_arguments_still_raise(_subject: Subject) -> None:
    """Wrong arguments of factories MUST raise a TypeError, as they do without cuda-morph.

    Fix: nothing in the plugin; core changes no signature.
    """
    import torch

    for what, call in {
        "device=1.5": lambda: torch.zeros(2, device=1.5),
        "devise='cuda'": lambda: torch.zeros(2, devise="cuda"),
        "a device as size": lambda: torch.zeros("cuda"),
        "device=['cuda']": lambda: torch.ones(1).to(device=["cuda"]),
    }.items():
        require_raises(TypeError, call, what=what)


@check("CM-STR-027", level=Level.RUNS, requires=_STRING, since="1.0", devices=1)
def operators_take_strings(subject: Subject) -> None:
    """Operators called through torch.ops MUST take strings and devices as well.

    Fix: nothing in the plugin; core interprets device strings below the dispatcher.
    """
    import torch

    index = torch.cuda.current_device()
    aten = torch.ops.aten
    for device in ("cuda", f"cuda:{index}", torch.device("cuda")):
        require_on(aten.zeros([2], device=device), subject, f"zeros on {device!r}", index=index)
        made = aten.arange.default(3, device=device)
        require_on(made, subject, f"arange.default on {device!r}", index=index)
        require_equal(made.tolist(), [0, 1, 2], "values of arange.default")
    moved = aten._to_copy(torch.ones(2), device="cuda")
    require_on(moved, subject, "_to_copy", index=index)


@check("CM-STR-028", level=Level.RUNS, requires=_STRING, since="1.0", devices=1)
def sparse_tensors_take_strings(subject: Subject) -> None:
    """torch.sparse_coo_tensor MUST make a tensor on the device that converts to the right one.

    Fix: register the sparse dispatch key of the device, or let it fall back to the CPU.
    """
    import torch

    made = torch.sparse_coo_tensor([[0, 2]], [1.0, 2.0], (3,), device="cuda")
    require_on(made, subject, "sparse_coo_tensor", index=torch.cuda.current_device())
    require(made.is_sparse, f"its layout is {made.layout}")
    require_equal(made.to_dense().tolist(), [1.0, 0.0, 2.0], "its values")
    require_equal(made.coalesce().indices().tolist(), [[0, 2]], "its indices")


@check("CM-STR-029", level=Level.RUNS, requires=_STRING, since="1.0", devices=1)
def nested_tensors_take_strings(subject: Subject) -> None:
    """torch.nested with the jagged layout MUST make tensors on the device.

    Fix: register ``narrow``, ``cat`` and ``split`` for the device; jagged tensors are Python.
    """
    import torch

    parts = [torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0, 5.0])]
    made = torch.nested.nested_tensor(parts, layout=torch.jagged, device="cuda")
    require_on(made.values(), subject, "nested_tensor", index=torch.cuda.current_device())
    doubled = [part.tolist() for part in (made * 2).unbind()]
    require_equal(doubled, [[2.0, 4.0], [6.0, 8.0, 10.0]], "its double")
