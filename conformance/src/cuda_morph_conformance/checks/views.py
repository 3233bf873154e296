"""The two views: whose world the code sees, and that computing is the same in both."""

from __future__ import annotations

import sys
import threading
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any

from cuda_morph_conformance.models import numbers
from cuda_morph_conformance.registry import check, require
from cuda_morph_conformance.tolerances import require_close
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from cuda_morph_conformance.subject import Subject

_runs = partial(check, level=Level.RUNS, since="1.0", devices=1)


@_runs("CM-VIEW-001")
def availability_follows_the_view(subject: Subject) -> None:
    """torch.cuda.is_available MUST be True in the cuda view and False in the native one.

    Fix: do not override it; libraries take the vendor's branch where it is False.
    """
    import torch

    seen, expected = torch.cuda.is_available(), subject.view == "cuda"
    require(seen is expected, f"torch.cuda.is_available() is {seen} in the {subject.view} view")


@_runs("CM-VIEW-002")
def device_types_follow_the_view(subject: Subject) -> None:
    """Tensors MUST show the type cuda in the cuda view, and the vendor's in the native one.

    Fix: register the device under ``Backend.device_type``; core shows the other name.
    """
    import torch

    expected = _shown(subject)
    for what, device in (
        ("a tensor's device", torch.ones(1, device="cuda").device),
        ("a moved tensor's device", torch.ones(1).cuda().device),
        ("a parameter's device", next(torch.nn.Linear(1, 1).cuda().parameters()).device),
        ("torch.device('cuda')", torch.device("cuda")),
    ):
        require(device.type == expected, f"{what} has the type {device.type!r}, not {expected!r}")


@_runs("CM-VIEW-003")
def printing_follows_the_view(subject: Subject) -> None:
    """Devices and tensors MUST print the name that the view shows, and evaluate to the same.

    Fix: leave ``__repr__`` of tensors and devices to PyTorch.
    """
    import torch

    x, shown = torch.ones(2, device="cuda"), _shown(subject)
    name = str(x.device)
    require(name.partition(":")[0] == shown, f"the device prints as {name!r}")
    require(torch.device(name) == x.device, f"torch.device({name!r}) is another device")
    if shown != "cpu":
        require(f"device='{name}'" in repr(x), f"the tensor prints as {x!r}")
    again = eval(repr(x.device), {"device": torch.device})  # noqa: S307 - torch's own repr
    require(again == x.device, f"{x.device!r} does not evaluate to itself")


@_runs("CM-VIEW-004")
def is_cuda_in_both_views(_subject: Subject) -> None:
    """Tensor.is_cuda MUST be True for device tensors in both views, is_cpu False.

    Fix: keep ``torch.Tensor`` as the type of device tensors; core answers on that class.
    """
    import torch

    x, host = torch.ones(2, device="cuda"), torch.ones(2, device="cpu")
    require(x.is_cuda, "is_cuda is False on the device")
    require(torch.nn.Parameter(x).is_cuda, "is_cuda is False for a parameter")
    require(x.untyped_storage().is_cuda or x.is_cpu, "is_cuda is False for a storage")
    if x.device != host.device:
        require(not host.is_cuda, "is_cuda is True on the CPU")
        require(not x.is_cpu, "is_cpu is True on the device")


@_runs("CM-VIEW-005")
def devices_compare_and_hash(_subject: Subject) -> None:
    """Devices made of strings MUST equal, and hash as, the devices that tensors have.

    Fix: register one device type only; two types of one card cannot be equal.
    """
    import torch

    x = torch.ones(1, device="cuda:0")
    made = torch.device("cuda:0")
    require(made == x.device, f"torch.device('cuda:0') is not {x.device!r}")
    require(hash(made) == hash(x.device), "their hashes differ")
    require({made: 1}[x.device] == 1, "one cannot be looked up by the other")
    require(torch.device("cuda") != torch.device("meta"), "cuda equals meta")


@_runs("CM-VIEW-006")
def own_name_is_accepted(subject: Subject) -> None:
    """The vendor's own device type MUST be accepted in both views and mean the same device.

    Fix: rename PrivateUse1 to ``Backend.device_type`` when the adapter loads.
    """
    import torch

    own = torch.ones(2, device=subject.device_type)
    there = torch.ones(2, device="cuda")
    require(own.device == there.device, f"{own.device} and {there.device} are two devices")
    require_close(own + there, torch.full((2,), 2.0), "a sum of both")


@_runs("CM-VIEW-007")
def native_libraries_keep_their_world(subject: Subject) -> None:
    """Packages in Backend.native_libraries MUST see the vendor's device in both views.

    Fix: list top-level packages that have their own branch for the device, and no others.
    """
    import torch

    x = torch.ones(1, device="cuda")

    def ask() -> Any:
        return torch.cuda.is_available(), x.device.type

    for library in subject.backend().native_libraries:
        world = {"__name__": f"{library}.accelerators", "torch": torch}
        inside = FunctionType(ask.__code__, world, "ask", None, ask.__closure__)
        answer = inside()
        require(answer == (False, subject.device_type), f"{library} is told {answer}")
    expected = (subject.view == "cuda", _shown(subject))
    require(ask() == expected, f"user code is told {ask()} after the libraries")


@_runs("CM-VIEW-008")
def threads_and_errors_keep_the_view(subject: Subject) -> None:
    """Threads, and code after an exception, MUST see the same view as the rest.

    Fix: keep no state of your own about who is asking.
    """
    import torch

    expected = (subject.view == "cuda", _shown(subject))
    seen: list[Any] = []

    def ask() -> None:
        seen.append((torch.cuda.is_available(), torch.ones(1, device="cuda").device.type))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    try:
        torch.ones(1, device="cuda").view(7)
    except RuntimeError:
        ask()
    require(seen == [expected] * 5, f"answers were {seen}, expected {expected} five times")


@_runs("CM-VIEW-009")
def cuda_toolkit_is_not_pretended(subject: Subject) -> None:
    """In both views, PyTorch MUST NOT claim an NVIDIA toolkit or cuDNN that is not there.

    Libraries take ``torch.version.cuda`` for the proof that they may load CUDA binaries.

    Fix: remove what sets ``torch.version.cuda`` or ``torch.backends.cudnn`` in the adapter.
    """
    import torch

    if torch.version.cuda is None or subject.device_type != "cuda":
        require(not torch.backends.cudnn.is_available(), "cudnn.is_available() is True")
    built = torch.backends.cuda.is_built()
    require(built or subject.view == "native", "cuda.is_built() is False in the cuda view")
    require(torch.version.cuda != "", "torch.version.cuda is an empty string")


@_runs("CM-VIEW-010")
def accelerator_interface_agrees(_subject: Subject) -> None:
    """torch.accelerator MUST name the same device, and count as torch.cuda does.

    Fix: register the adapter's hooks (``PrivateUse1HooksInterface``) with ``isAvailable`` and
    ``deviceCount``.
    """
    import torch

    x = torch.ones(1, device="cuda")
    current = torch.accelerator.current_accelerator()
    if x.device.type == "cpu":
        require(current is None, f"the CPU computes, and torch.accelerator names {current}")
        return
    require(current is not None, "torch.accelerator knows no accelerator")
    require(current == torch.device(x.device.type), f"torch.accelerator names {current}")
    counts = torch.accelerator.device_count(), torch.cuda.device_count()
    require(counts[0] == counts[1], f"device counts are {counts}")


@_runs("CM-VIEW-011")
def branches_of_user_code_agree(subject: Subject) -> None:
    """The usual ways to choose a device MUST all end on the accelerator, or the CPU if native.

    Fix: see which choice went wrong; each is a line that many programs have.
    """
    import torch

    chosen = "cuda" if torch.cuda.is_available() else "cpu"
    x = numbers(2).to(chosen)
    require(x.is_cuda or subject.view == "native", f"the usual line chose {x.device}")
    for choose in ("cuda", torch.device("cuda"), torch.device("cuda", 0), x.cuda().device):
        value = numbers(2).to(choose)
        require(value.is_cuda, f"Tensor.to({choose!r}) left it on {value.device}")
        require_close(value * 2, numbers(2) * 2, f"a product on {choose!r}")
    require("torch.cuda" in sys.modules, "torch.cuda is not in sys.modules")


def _shown(subject: Subject) -> str:
    """The device type that user code sees; the CPU keeps its name in both views."""
    own = subject.device_type
    return "cuda" if subject.view == "cuda" and own != "cpu" else own
