"""``torch.device`` in all its spellings, and strings that are no devices."""

from __future__ import annotations

import copy
import functools
import pickle
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
    from cuda_morph_conformance.subject import Subject

_STRING = ("device.string",)


@check("CM-STR-001", level=Level.RUNS, requires=_STRING, since="1.0", devices=1)
def cuda_names_the_accelerator(subject: Subject) -> None:
    """torch.device("cuda") MUST be the accelerator without an index, named as the view says.

    Fix: set ``DeviceMapping(target=...)`` to the device type that the adapter registers.
    """
    import torch

    device = torch.device("cuda")
    require_equal(device.type, shown_type(subject), 'torch.device("cuda").type')
    require_equal(device.index, None, 'torch.device("cuda").index')
    require_equal(str(device), shown_type(subject), 'str(torch.device("cuda"))')
    expected = f"device(type='{shown_type(subject)}')"
    require_equal(repr(device), expected, 'repr(torch.device("cuda"))')


@check("CM-STR-002", level=Level.RUNS, requires=_STRING, since="1.0", devices=1)
def index_is_part_of_the_name(subject: Subject) -> None:
    """cuda:N in each of its spellings MUST be the device of the tensors that are made there.

    Fix: register the adapter's device type so that its tensors always carry an index.
    """
    import torch

    for index in range(subject.device_count):
        there = torch.ones(1, device=f"cuda:{index}")
        require_on(there, subject, f"device='cuda:{index}'", index=index)
        for what, device in {
            "a string": torch.device(f"cuda:{index}"),
            "two positions": torch.device("cuda", index),
            "keywords": torch.device(type="cuda", index=index),
            "a mixture": torch.device("cuda", index=index),
            "a device of a device": torch.device(torch.device("cuda", index)),
        }.items():
            require(device == there.device, f"{what}: {device!r} is not {there.device!r}")
            require_equal(hash(device), hash(there.device), f"{what}: hash")


@check("CM-STR-003", level=Level.RUNS, requires=("device.index",), since="1.0", devices=1)
def numbers_name_devices(subject: Subject) -> None:
    """A bare integer MUST name the accelerator with that index wherever a device is taken.

    Fix: register the adapter as PyTorch's accelerator (``torch.accelerator``), which bare integers
    mean.
    """
    import torch

    for index in range(subject.device_count):
        require_on(torch.zeros(2, device=index), subject, f"device={index}", index=index)
        require_on(torch.zeros(2).to(index), subject, f".to({index})", index=index)
        require_on(torch.zeros(2).cuda(index), subject, f".cuda({index})", index=index)
        require_on(torch.zeros(1).new_ones(2, device=index), subject, "new_ones", index=index)
        require_equal(str(torch.device(index)), shown(subject, index), f"torch.device({index})")


@check("CM-STR-004", level=Level.RUNS, requires=_STRING, since="1.0", devices=1)
def formatted_names_work(subject: Subject) -> None:
    """Names that a program builds (f-strings, str of a device, a str subclass) MUST work.

    Fix: nothing in the plugin; core interprets device strings.
    """
    import torch

    class Name(str):
        __slots__ = ()

    index = torch.cuda.current_device()
    for device in (
        f"cuda:{torch.cuda.current_device()}",
        str(torch.device("cuda")),
        str(torch.ones(1, device="cuda").device),
        Name("cuda"),
        "xcuda"[1:],
        "cuda" if torch.cuda.device_count() else "cpu",
    ):
        require_on(torch.ones(1, device=device), subject, f"device={device!r}", index=index)


@check("CM-STR-005", level=Level.RUNS, requires=_STRING, since="1.0", devices=1)
def other_names_are_untouched(subject: Subject) -> None:
    """Names of other devices, and the accelerator's own, MUST mean what they always mean.

    Fix: nothing in the plugin; core replaces the name cuda only.
    """
    import torch

    for name in ("cpu", "meta", "xpu:3", "mps"):
        require_equal(str(torch.device(name)), name, f"torch.device({name!r})")
    require_equal(torch.device("cpu", 0).index, 0, "index of cpu:0")
    require_equal(torch.ones(1).device.type, "cpu", "a tensor without a device")
    require_equal(torch.ones(1, device="meta").device.type, "meta", "device='meta'")
    own = torch.device(subject.device_type)
    require_equal(own.type, shown_type(subject), f"torch.device({subject.device_type!r}).type")
    require_on(torch.ones(1, device=own), subject, "the accelerator's own name")


@check("CM-STR-006", level=Level.RUNS, requires=_STRING, since="1.0", devices=1)
def wrong_names_raise(_subject: Subject) -> None:
    """Strings that name no device MUST raise a RuntimeError that quotes them.

    Fix: nothing in the plugin; PyTorch's parser reports what it was given.
    """
    import torch

    for text in ("cuda:x", "cuda:", "cuda:-1", "cuda:1:2", "cudax", "CUDA"):
        message = require_raises(RuntimeError, torch.device, text, what=f"torch.device({text!r})")
        require(text in message, f"the error does not quote {text!r}: {message[:200]}")
    message = require_raises(
        RuntimeError, lambda: torch.zeros(2, device="cuda:x"), what="device='cuda:x'"
    )
    require("cuda:x" in message, f"the error does not quote 'cuda:x': {message[:200]}")


@check("CM-STR-007", level=Level.RUNS, requires=_STRING, since="1.0", devices=1)
def devices_survive_copies(_subject: Subject) -> None:
    """Devices MUST stay equal through pickle, copy, deepcopy, dictionaries and eval of their repr.

    Fix: nothing in the plugin; core keeps PyTorch's own class.
    """
    import torch

    for device in (
        torch.device("cuda"),
        torch.device("cuda:0"),
        torch.ones(1, device="cuda").device,
    ):
        twins = {
            "pickle": pickle.loads(pickle.dumps(device)),  # noqa: S301 - made one line above
            "copy": copy.copy(device),
            "deepcopy": copy.deepcopy({"device": device})["device"],
            "repr": torch.device(**_keywords(repr(device))),
        }
        for what, twin in twins.items():
            require(twin == device, f"{what} of {device!r} is {twin!r}")
            require({device: 1}.get(twin) == 1, f"{what} of {device!r} is another key")


@check("CM-STR-008", level=Level.RUNS, requires=_STRING, since="1.0", devices=1)
def device_stays_pytorchs_class(_subject: Subject) -> None:
    """torch.device MUST stay PyTorch's own class, for isinstance, annotations and dispatch.

    Fix: nothing in the plugin; remove replacements of ``torch.device`` from the adapter's patches.
    """
    import torch

    @functools.singledispatch
    def kind(_value: object) -> str:
        return "other"

    kind.register(torch.device, lambda _value: "device")
    device = torch.device("cuda")
    require(type(device) is torch.device, f"its type is {type(device)}")
    require(torch.device is torch._C.device, "torch.device was replaced")
    require(isinstance(torch.device, type), "torch.device is no class")
    require_equal(kind(device), "device", "singledispatch")
    require(torch.device | None is not None, "it cannot be part of a union")


@check("CM-STR-009", level=Level.RUNS, requires=_STRING, since="1.0", devices=1)
def harmless_strings_stay(_subject: Subject) -> None:
    """The text cuda where no device is taken MUST stay what it is: keys, names, messages, paths.

    Fix: nothing in the plugin; core never replaces text in general.
    """
    import torch
    from torch import nn

    modules = nn.ModuleDict({"cuda:0": nn.Identity(), "cuda:1": nn.ReLU()})
    require_equal(list(modules), ["cuda:0", "cuda:1"], "keys of a ModuleDict")
    owner = nn.Module()
    owner.register_parameter("cuda_scale", nn.Parameter(torch.ones(1)))
    owner.register_buffer("is_cuda", torch.ones(1))
    require_equal(list(owner.state_dict()), ["cuda_scale", "is_cuda"], "keys of a state_dict")
    text = require_raises(AttributeError, getattr, modules, "cuda:7", what="an absent attribute")
    require("cuda:7" in text, f"the error is {text!r}")


@check("CM-STR-010", level=Level.RUNS, requires=_STRING, since="1.0", devices=1)
def comparisons_with_strings_hold(subject: Subject) -> None:
    """Branches such as ``x.device.type == "cuda"`` MUST be taken as the view promises.

    Fix: nothing in the plugin; a module that must see native names belongs into
    ``Backend(native_libraries=...)``.
    """
    import torch

    there = torch.ones(1, device="cuda")
    is_cuda_here = shown_type(subject) == "cuda"
    require_equal(there.device.type == "cuda", is_cuda_here, 'x.device.type == "cuda"')
    require_equal("cuda" in str(there.device), is_cuda_here, '"cuda" in str(x.device)')
    require_equal(str(there.device).startswith("cuda"), is_cuda_here, "startswith")
    require(there.device == torch.device(there.device.type, there.device.index), "made from parts")
    require(there.device != torch.device("meta"), "it equals the meta device")


def _keywords(text: str) -> dict[str, str | int]:
    """Returns the keywords of ``device(type='cuda', index=0)``."""
    pairs = (item.split("=") for item in text.removeprefix("device(").rstrip(")").split(", "))
    return {name: int(value) if value.isdigit() else value.strip("'") for name, value in pairs}
