"""Checkpoints: saved, loaded, moved between devices and between machines."""

from __future__ import annotations

import copy
import io
import pickle
import tempfile
import zipfile
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuda_morph_conformance.models import CONV_NET, mlp, numbers
from cuda_morph_conformance.registry import CheckFailed, NotRun, check, require
from cuda_morph_conformance.tolerances import require_close
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from cuda_morph_conformance.subject import Subject

_runs = partial(check, level=Level.RUNS, since="1.0", devices=1)
_trains = partial(check, level=Level.TRAINS, since="1.0", devices=1)

_CPU_TAG = b"X\x03\x00\x00\x00cpu"
"""How pickle writes the location ``cpu`` into a checkpoint."""

_PLAIN_READER = """
import sys, torch
state = torch.load(sys.argv[1], map_location="cpu")
print("read", state["w"].device, state["w"].tolist(), torch.cuda.is_available())
"""


@_runs("CM-IO-001", requires=("io.save", "io.load"))
def tensors_survive(_subject: Subject) -> None:
    """What torch.save writes of device tensors, torch.load MUST read back onto the same device.

    Fix: register the device with ``torch.serialization.register_package``, or rename PrivateUse1,
    which does it.
    """
    import torch

    host = {
        "float": numbers(3, 2),
        "half": numbers(4).half(),
        "integer": torch.arange(5),
        "empty": torch.empty(0),
        "scalar": torch.tensor(2.5),
        "strided": numbers(4, 4).t()[1:, ::2],
    }
    loaded = torch.load(_saved({name: value.cuda() for name, value in host.items()}))
    for name, value in host.items():
        seen = loaded[name]
        require(seen.is_cuda, f"{name} came back on {seen.device}")
        require(seen.dtype == value.dtype, f"{name} came back as {seen.dtype}")
        require_close(seen, value, name)


@_runs("CM-IO-002", requires=("io.save", "io.load"))
def sharing_survives(_subject: Subject) -> None:
    """Device tensors that share memory MUST share it after saving and loading.

    Fix: let ``untyped_storage().data_ptr()`` of device tensors be the address of the memory.
    """
    import torch

    base = torch.zeros(6, device="cuda")
    loaded = torch.load(_saved({"base": base, "part": base[2:4]}))
    loaded["part"].fill_(1)
    require_close(loaded["base"], torch.tensor([0.0, 0, 1, 1, 0, 0]), "the base after a write")


@_runs("CM-IO-003", requires=("io.map_location",))
def map_location_takes_strings(_subject: Subject) -> None:
    """map_location MUST take the strings cuda, cuda:0 and cpu, for files from either device.

    Fix: see ``bridges/serialization.py`` of core; the adapter must not register ``cuda`` itself.
    """
    import torch

    for origin in ("cpu", "cuda"):
        archive = _saved(numbers(3).to(origin))
        for location in ("cuda", "cuda:0", "cpu"):
            archive.seek(0)
            value = torch.load(archive, map_location=location)
            _require_place(value, location, f"from {origin} with map_location={location!r}")
            require_close(value, numbers(3), f"from {origin} to {location}")


@_runs("CM-IO-004", requires=("io.map_location",))
def map_location_takes_devices(_subject: Subject) -> None:
    """map_location MUST take a torch.device made of the string cuda.

    Fix: see CM-IO-003.
    """
    import torch

    for name in ("cuda", "cuda:0", "cpu"):
        value = torch.load(_saved(numbers(3)), map_location=torch.device(name))
        _require_place(value, name, f"map_location=torch.device({name!r})")


@_runs("CM-IO-005", requires=("io.map_location",))
def map_location_takes_tables(_subject: Subject) -> None:
    """map_location MUST take a dictionary from and to names of CUDA devices.

    Fix: see CM-IO-003.
    """
    import torch

    for location, table, expected in (
        ("cuda:0", {"cuda:0": "cpu"}, "cpu"),
        ("cuda:3", {"cuda:3": "cuda:0"}, "cuda:0"),
        ("cpu", {"cpu": "cuda:0"}, "cuda:0"),
    ):
        value = torch.load(_written_by(location), map_location=table)["w"]
        _require_place(value, expected, f"a file of {location} with {table}")


@_runs("CM-IO-006", requires=("io.map_location",))
def map_location_takes_functions(_subject: Subject) -> None:
    """map_location MUST take a function, which may move storages to the device or leave them.

    Fix: let ``UntypedStorage.cuda`` move a storage; ``storage.to(device=...)`` is its plain form.
    """
    import torch

    moved = torch.load(_saved(numbers(3)), map_location=lambda storage, _tag: storage.cuda(0))
    _require_place(moved, "cuda", "lambda storage, tag: storage.cuda(0)")
    require_close(moved, numbers(3), "the moved tensor")
    left = torch.load(_written_by("cuda:0"), map_location=lambda storage, _tag: storage)["w"]
    _require_place(left, "cpu", "lambda storage, tag: storage")


@_runs("CM-IO-007", requires=("io.cuda_checkpoint",))
def files_of_cuda_load(_subject: Subject) -> None:
    """A file whose tensors carry CUDA locations MUST load onto the accelerator, and onto the CPU.

    Fix: see CM-IO-003; nothing in the adapter needs to know the name ``cuda``.
    """
    import torch

    for location in ("cuda", "cuda:0"):
        value = torch.load(_written_by(location))["w"]
        _require_place(value, "cuda:0", f"a file tagged {location}")
        require_close(value, torch.arange(3.0), f"a file tagged {location}")
        host = torch.load(_written_by(location), map_location="cpu")["w"]
        _require_place(host, "cpu", f"a file tagged {location} with map_location='cpu'")


@_runs("CM-IO-008", requires=("io.cuda_checkpoint",), devices=2)
def files_keep_their_index(_subject: Subject) -> None:
    """A file tagged cuda:1 MUST load onto the second accelerator.

    Fix: let the restore function of the device read the index of the location.
    """
    import torch

    _require_place(torch.load(_written_by("cuda:1"))["w"], "cuda:1", "a file tagged cuda:1")


@_runs("CM-IO-009", requires=("io.cuda_checkpoint",))
def missing_devices_are_named(_subject: Subject) -> None:
    """A file tagged with a device that is not here MUST raise and speak of map_location.

    Fix: compare the index with ``torch.cuda.device_count()`` before restoring.
    """
    import torch

    try:
        value = torch.load(_written_by("cuda:93"))["w"]
    except RuntimeError as error:
        require("map_location" in str(error), f"the message does not help: {error}")
        return
    raise CheckFailed(f"a tensor of cuda:93 was put on {value.device}")


@_runs("CM-IO-010", requires=("io.portable_checkpoint",))
def files_open_without_the_shim(subject: Subject) -> None:
    """A file saved from the device MUST load on a machine without it, with map_location="cpu".

    Fix: save plain tensors; a tensor subclass or a storage class of the adapter's own in the file
    makes every reader import the adapter.
    """
    import torch

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "weights.pt")
        torch.save({"w": torch.arange(3.0, device="cuda")}, path)
        ended = subject.run_program(_PLAIN_READER, args=[str(path)], shim=False)
    require("read cpu [0.0, 1.0, 2.0]" in ended.stdout, (ended.stdout + ended.stderr)[-500:])


@_runs("CM-IO-011", requires=("io.portable_checkpoint",), views=("cuda",))
def files_carry_portable_names(_subject: Subject) -> None:
    """In the cuda view, saved tensors MUST carry the location cuda:N, so that CUDA machines load.

    Fix: let the adapter leave the location to PyTorch's registry, with no tag at a smaller priority
    than PyTorch's own.
    """
    import torch

    if torch.empty(0, device="cuda").device.type == "cpu":
        return  # the name cpu loads everywhere
    tags: list[str] = []

    def note(storage: Any, tag: str) -> Any:
        tags.append(tag)
        return storage

    torch.load(_saved(torch.ones(2, device="cuda")), map_location=note)
    require(tags == ["cuda:0"], f"the file says {tags}")


@_trains("CM-IO-012", requires=("io.save", "io.load"))
def modules_survive(_subject: Subject) -> None:
    """The state of a module MUST come back the same, loaded into a module on either device.

    Fix: see which entry differs; buffers of integers (``num_batches_tracked``) are easily lost.
    """
    import torch

    model = CONV_NET.build().cuda()
    with torch.no_grad():
        model(CONV_NET.inputs().cuda())
    archive = _saved(model.state_dict())
    for place in ("cuda", "cpu"):
        archive.seek(0)
        other = CONV_NET.build().to(place)
        other.load_state_dict(torch.load(archive))
        for name, value in model.state_dict().items():
            require_close(other.state_dict()[name], value, f"{name} on {place}")


@_trains("CM-IO-013", requires=("io.save", "io.load"))
def mapped_files_load(_subject: Subject) -> None:
    """torch.load with mmap=True, and loading with assign=True, MUST put weights on the device.

    Fix: let ``Module.to`` and copies accept source tensors whose memory is a mapped file.
    """
    import torch

    weights = mlp().state_dict()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "weights.pt")
        torch.save(weights, path)
        state = torch.load(path, mmap=True, map_location="cuda")
        model = mlp()
        model.load_state_dict(state, assign=True)
        for name, value in model.state_dict().items():
            require(value.is_cuda, f"{name} is on {value.device}")
            require_close(value, weights[name], name)


@_runs("CM-IO-014", requires=("io.save", "io.load"))
def pickles_and_copies(_subject: Subject) -> None:
    """Device tensors and modules MUST survive pickle, copy.copy and copy.deepcopy.

    Fix: let ``Tensor.__reduce_ex__`` of device tensors be PyTorch's own.
    """
    import torch

    value = numbers(3, 2).cuda()
    clone = pickle.loads(pickle.dumps(value))  # noqa: S301 - made in the line before
    require(clone.is_cuda, f"pickle brought it to {clone.device}")
    require_close(clone, value, "pickled tensor")
    deep = copy.deepcopy(value)
    require(deep.is_cuda, f"deepcopy brought it to {deep.device}")
    deep.zero_()
    require_close(value, numbers(3, 2), "the original after its copy was written to")
    model = copy.deepcopy(mlp().cuda())
    require(all(p.is_cuda for p in model.parameters()), "deepcopy of a module left the device")
    device = pickle.loads(pickle.dumps(torch.device("cuda", 0)))  # noqa: S301 - likewise
    require(device == value.device, f"a pickled device came back as {device!r}")


@_runs("CM-IO-015", requires=("io.safetensors",))
def safetensors_load(_subject: Subject) -> None:
    """Safetensors files MUST load straight to the device named cuda, and be written from it.

    Fix: safetensors passes the name to ``torch.Tensor.to`` and its integers to ``cuda:N``; see the
    traceback for the device argument that was not understood.
    """
    if find_spec("safetensors") is None:
        raise NotRun("the package safetensors is not installed")
    safe_open = import_module("safetensors").safe_open
    library = import_module("safetensors.torch")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "weights.safetensors")
        library.save_file({"w": numbers(3, 2).cuda()}, path)
        for device in ("cuda", "cuda:0", 0):
            value = library.load_file(path, device=device)["w"]
            require(value.is_cuda, f"load_file(device={device!r}) gives {value.device}")
            require_close(value, numbers(3, 2), f"load_file(device={device!r})")
        with safe_open(path, framework="pt", device="cuda:0") as file:
            require(file.get_tensor("w").is_cuda, "safe_open(device='cuda:0') left the CPU")
            require_close(file.get_slice("w")[1:], numbers(3, 2)[1:], "a slice of the file")


def _saved(value: object) -> io.BytesIO:
    import torch

    buffer = io.BytesIO()
    torch.save(value, buffer)
    buffer.seek(0)
    return buffer


def _written_by(location: str) -> io.BytesIO:
    """Returns a file as another machine writes it: the tensor ``w`` carries that location."""
    import torch

    tag = b"X" + len(location).to_bytes(4, "little") + location.encode()
    out = io.BytesIO()
    archive = _saved({"w": torch.arange(3.0, device="cpu")})
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(out, "w") as new:
        for item in old.infolist():
            data = old.read(item)
            if item.filename.endswith("data.pkl"):
                require(data.count(_CPU_TAG) == 1, "PyTorch writes locations in another way now")
                data = data.replace(_CPU_TAG, tag)
            new.writestr(item, data)
    out.seek(0)
    return out


def _require_place(value: Any, name: str, what: str) -> None:
    import torch

    place = torch.empty(0, device=name).device
    require(value.device == place, f"{what}: the tensor is on {value.device}, not on {place}")
