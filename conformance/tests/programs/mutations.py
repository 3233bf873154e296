"""One thing that breaks each check: the name of a function, and what takes its place.

The second item is called with the real object and returns the wrong one.
"""

from __future__ import annotations

import contextlib
import itertools
from types import SimpleNamespace

import torch

cuda, Tensor, Module = torch.cuda, torch.Tensor, torch.nn.Module
shared: dict = {}


def answer(value):
    """Whatever it is asked, it says this."""
    return lambda _real: lambda *_args, **_kwargs: value


def nothing(_real):
    """It does nothing, and returns its subject if it has one."""
    return lambda *args, **_kwargs: (
        args[0] if args and isinstance(args[0], Tensor | Module) else None
    )


def fails(error):
    def raised(*_args, **_kwargs):
        raise error

    return lambda _real: raised


def on_host(real):
    return lambda *args, **kwargs: real(*args, **{k: v for k, v in kwargs.items() if k != "device"})


def without(*names):
    """It ignores these keywords."""

    def wrong(real):
        return lambda *args, **kwargs: real(
            *args, **{k: v for k, v in kwargs.items() if k not in names}
        )

    return wrong


def changed(change):
    """It changes its result."""
    return lambda real: lambda *args, **kwargs: change(real(*args, **kwargs))


def on_device(change):
    """It changes what it returns if that is on the device."""
    return changed(lambda x: change(x) if x.is_cuda else x)


def subclass(**methods):
    return lambda real: type("Wrong", (real,), methods)


def off_by_a_little(real):
    def wrong(self, *args, **kwargs):
        result = real(self, *args, **kwargs)
        return result * 1.1 if result.is_cuda and result.is_floating_point() else result

    return wrong


def only_strings(real):
    def wrong(*args, device="cpu", **kwargs):
        return real(*args, device=device if type(device) is str else "cpu", **kwargs)

    return wrong


def first_device(real):
    def wrong(*args, device="cpu", **kwargs):
        return real(*args, device="cuda:0" if "cuda" in str(device) else device, **kwargs)

    return wrong


def one_buffer(real):
    """Every tensor that it makes is the same memory."""

    def wrong(*args, **kwargs):
        made = real(*args, **kwargs)
        key = (made.device, made.dtype, made.shape)
        return shared.setdefault(key, made).copy_(made)

    return wrong


def replaced_parameters(real):
    def wrong(self, *args, **kwargs):
        real(self, *args, **kwargs)
        for module in self.modules():
            for name, value in module.named_parameters(recurse=False):
                module._parameters[name] = torch.nn.Parameter(value.detach().clone())
        return self

    return wrong


def set_for_all_threads(real):
    def wrong(device):
        shared["device"] = torch.device("cuda", device).index if isinstance(device, int) else 0
        real(device)

    cuda.current_device = lambda: shared.get("device", 0)
    return wrong


def stream_for_all_threads(real):
    begin = cuda.current_stream

    def wrong(stream):
        shared["stream"] = stream
        real(stream)

    cuda.current_stream = lambda *_device: shared.get("stream") or begin()
    cuda.StreamContext.__exit__ = lambda *_args: None
    cuda.StreamContext.__enter__ = lambda self: cuda.set_stream(self.stream)
    return wrong


def forgets(key):
    def wrong(real):
        return lambda *args: {k: v for k, v in real(*args).items() if key not in k}

    return wrong


def one_for_all(real):
    one = real()
    return made_by(lambda *_args, **_kwargs: one)


def made_by(function):
    """Returns a class whose objects come from a function."""
    return type("Wrong", (), {"__new__": lambda _cls, *args, **kwargs: function(*args, **kwargs)})


class Handed:
    """A device properties object in which some fields are others."""

    def __init__(self, real, **fields):
        self.__dict__.update(fields, _real=real)

    def __getattr__(self, name):
        return getattr(self.__dict__["_real"], name)


def other_properties(**fields):
    return changed(lambda real: Handed(real, **fields))


grows = itertools.count(1)
wrong_stream = subclass(
    synchronize=lambda _self: 1,
    query=lambda _self: None,
    priority_range=staticmethod(lambda: (0, 5)),
)

MUTATIONS = {
    "CM-DEV-001": ("cuda.device_count", changed(lambda n: n + 1)),
    "CM-DEV-002": ("cuda.set_device", nothing),
    "CM-DEV-003": ("cuda.current_device", answer(1)),
    "CM-DEV-004": ("cuda.set_device", lambda real: lambda d: real(d) if type(d) is int else None),
    "CM-DEV-005": ("Tensor.cuda", lambda real: lambda self, device=0: real(self, device)),
    "CM-DEV-006": ("cuda.set_device", set_for_all_threads),
    "CM-DEV-007": ("cuda.device.__exit__", answer(None)),
    "CM-DEV-008": (
        "cuda.device_of.__init__",
        lambda real: lambda self, obj: setattr(self, "idx", 1),
    ),
    "CM-DEV-009": ("cuda.device.__exit__", answer(None)),
    "CM-DEV-010": ("cuda.synchronize", answer(0)),
    "CM-DEV-011": ("cuda.get_device_properties", answer(SimpleNamespace(name="card"))),
    "CM-DEV-012": ("cuda.get_device_properties", other_properties(total_memory=16384)),
    "CM-DEV-013": ("cuda.get_device_name", answer("")),
    "CM-DEV-014": ("cuda.get_device_capability", answer(None)),
    "CM-DEV-017": ("torch.accelerator.is_available", answer(False)),
    "CM-DEV-030": ("Tensor.cuda", nothing),
    "CM-DEV-031": ("Tensor.cuda", without("memory_format")),
    "CM-DEV-032": ("Tensor.cuda", changed(Tensor.clone)),
    "CM-DEV-033": ("Tensor.is_cuda", lambda _real: False),
    "CM-DEV-034": ("Tensor.get_device", answer(-1)),
    "CM-DEV-035": ("Tensor.to", lambda real: lambda self, *_a, **_k: real(self, "cuda")),
    "CM-DEV-036": (
        "Tensor.cuda",
        changed(lambda x: x.nan_to_num() if x.is_floating_point() else x),
    ),
    "CM-DEV-037": ("Tensor.cuda", lambda real: lambda self, d=None, **_k: real(self)),
    "CM-DEV-038": ("Tensor.__repr__", answer("tensor")),
    "CM-DEV-039": ("torch.cat", changed(Tensor.cpu)),
    "CM-DEV-040": ("torch.add", lambda real: lambda a, b: real(a.cpu(), b.cpu())),
    "CM-DEV-041": ("Tensor.__mul__", changed(Tensor.cpu)),
    "CM-DEV-042": ("torch.add", lambda real: lambda a, b: real(a.cpu(), b.cpu())),
    "CM-DEV-043": ("Tensor.copy_", nothing),
    "CM-DEV-050": ("Module.cuda", nothing),
    "CM-DEV-051": ("Module.cuda", replaced_parameters),
    "CM-DEV-052": ("Module.half", replaced_parameters),
    "CM-DEV-053": ("Module.load_state_dict", nothing),
    "CM-DEV-054": ("torch.empty", on_host),
    "CM-DEV-060": ("torch.set_default_device", answer(None)),
    "CM-DEV-061": ("torch.full", lambda real: lambda *a: real(*a, device="cpu")),
    "CM-DEV-062": ("torch.zeros", lambda real: lambda *a, **k: real(*a, device="cuda:0")),
    "CM-STR-001": ("torch.device", answer(torch.device("meta"))),
    "CM-STR-002": ("torch.device", lambda real: lambda *_a, **_k: real("cuda:0")),
    "CM-STR-003": ("torch.zeros", only_strings),
    "CM-STR-004": ("torch.ones", only_strings),
    "CM-STR-005": ("torch.device", lambda real: lambda *_a, **_k: real("cuda:3")),
    "CM-STR-006": ("torch.device", lambda real: lambda *_a, **_k: real("cuda")),
    "CM-STR-007": ("copy.deepcopy", answer({"device": torch.device("cpu")})),
    "CM-STR-008": ("torch.device", made_by),
    "CM-STR-009": ("torch.nn.ModuleDict.__iter__", answer(iter(["sim:0"]))),
    "CM-STR-010": ("torch.ones", on_host),
    "CM-STR-020": ("torch.eye", on_device(lambda x: x * 2)),
    "CM-STR-021": ("torch.arange", first_device),
    "CM-STR-022": ("torch.randperm", changed(torch.zeros_like)),
    "CM-STR-023": ("torch.full_like", on_host),
    "CM-STR-024": ("torch.fft.fftfreq", on_host),
    "CM-STR-025": ("torch.zeros", without("requires_grad")),
    "CM-STR-026": ("torch.zeros", without("devise")),
    "CM-STR-027": ("torch.ops.aten._to_copy", answer(torch.ones(2))),
    "CM-STR-028": ("torch.sparse_coo_tensor", on_host),
    "CM-STR-029": ("torch.nested.nested_tensor", on_host),
    "CM-STR-040": ("torch.Generator", lambda real: made_by(lambda *_a, **_k: real("cpu"))),
    "CM-STR-041": ("torch.UntypedStorage.cuda", lambda _real: lambda self: self),
    "CM-STR-042": ("copy.deepcopy", lambda _real: lambda value: value),
    "CM-STR-043": ("Tensor.diagonal", changed(Tensor.clone)),
    "CM-STR-044": ("torch.zeros", without()),
    "CM-STR-045": ("Tensor.copy_", nothing),
    "CM-STR-046": ("torch.get_device_module", answer(SimpleNamespace(__name__="module"))),
    "CM-API-001": ("cuda.synchronize", fails(AttributeError("no driver"))),
    "CM-API-002": ("cuda.memory.memory_allocated", answer(None)),
    "CM-API-003": ("cuda.current_stream", answer(None)),
    "CM-API-004": ("cuda.random.initial_seed", answer(None)),
    "CM-API-005": ("cuda.amp.custom_fwd", fails(AssertionError("not compiled with CUDA"))),
    "CM-API-006": ("cuda.nccl.all_reduce", answer(None)),
    "CM-API-007": ("cuda.nvtx.range_push", answer(None)),
    "CM-API-008": ("cuda.tunable.is_enabled", answer(None)),
    "CM-API-009": ("torch._C._cuda_getDevice", answer(None)),
    "CM-API-010": ("cuda.HalfTensor", lambda _real: torch.Tensor),
    "CM-API-011": ("cuda.OutOfMemoryError", lambda _real: RuntimeError),
    "CM-API-013": ("cuda.synchronize", answer(None)),
    "CM-MEM-001": ("cuda.memory_allocated", answer(0)),
    "CM-MEM-002": ("cuda.memory_allocated", lambda _real: lambda *_: next(grows) << 26),
    "CM-MEM-003": ("cuda.max_memory_allocated", lambda _real: cuda.memory_allocated),
    "CM-MEM-004": ("cuda.reset_max_memory_allocated", answer(None)),
    "CM-MEM-005": ("cuda.memory_reserved", answer(0)),
    "CM-MEM-006": ("cuda.memory_stats", forgets("num_ooms")),
    "CM-MEM-007": ("cuda.memory_reserved", changed(lambda n: n >> 10)),
    "CM-MEM-008": ("cuda.memory_summary", answer("")),
    "CM-MEM-009": ("cuda.mem_get_info", changed(lambda pair: (pair[1] + 1, pair[1]))),
    "CM-MEM-010": ("cuda.empty_cache", answer(None)),
    "CM-MEM-011": ("cuda.reset_accumulated_memory_stats", answer(None)),
    "CM-MEM-012": ("cuda.memory_allocated", lambda real: lambda *_: real(0) + real(1)),
    "CM-MEM-020": ("torch.empty", fails(RuntimeError("out of memory"))),
    "CM-MEM-021": ("torch.ones", fails(RuntimeError("out of memory"))),
    "CM-MEM-022": ("cuda.memory_stats", changed(lambda stats: stats | {"num_ooms": 0})),
    "CM-MEM-030": ("Tensor.is_pinned", answer(False)),
    "CM-MEM-031": ("Tensor.pin_memory", one_buffer),
    "CM-MEM-032": ("Tensor.copy_", nothing),
    "CM-MEM-033": ("Tensor.cuda", one_buffer),
    "CM-MEM-034": ("Tensor.to", changed(torch.zeros_like)),
    "CM-STRM-001": ("cuda.Stream", one_for_all),
    "CM-STRM-002": ("Tensor.mul_", nothing),
    "CM-STRM-003": ("cuda.set_stream", answer(None)),
    "CM-STRM-004": ("cuda.set_stream", stream_for_all_threads),
    "CM-STRM-005": ("cuda.StreamContext.__exit__", answer(None)),
    "CM-STRM-006": ("cuda.default_stream", lambda _real: lambda *_device: cuda.Stream()),
    "CM-STRM-007": ("Tensor.__mul__", changed(torch.zeros_like)),
    "CM-STRM-008": ("cuda.Stream", wrong_stream),
    "CM-STRM-009": ("cuda.Stream", wrong_stream),
    "CM-STRM-010": ("cuda.Stream", wrong_stream),
    "CM-STRM-011": ("Tensor.__add__", one_buffer),
    "CM-STRM-013": ("cuda.Stream", lambda real: lambda **_k: real()),
    "CM-STRM-014": ("cuda.default_stream", lambda real: lambda *_device: real(0)),
    "CM-EVT-001": ("cuda.Event", subclass(record=lambda *_: 1)),
    "CM-EVT-002": ("cuda.Event", subclass(synchronize=lambda *_: 1)),
    "CM-EVT-003": ("cuda.Event", subclass(query=lambda *_: None)),
    "CM-EVT-004": ("Tensor.__mul__", changed(torch.zeros_like)),
    "CM-EVT-005": ("cuda.Event", subclass(elapsed_time=lambda *_: -1.0)),
    "CM-EVT-006": (
        "cuda.Event",
        subclass(elapsed_time=lambda *_: 31_000.0),
    ),
    "CM-EVT-007": ("cuda.Event", subclass(elapsed_time=lambda *_: 0.0)),
    "CM-EVT-008": ("Tensor.copy_", nothing),
    "CM-RNG-001": ("cuda.manual_seed", answer(None)),
    "CM-RNG-002": ("cuda.initial_seed", answer(0)),
    "CM-RNG-003": ("torch.rand", lambda real: lambda *a, **_k: real(*a).cuda()),
    "CM-RNG-004": ("cuda.manual_seed_all", lambda _real: cuda.manual_seed),
    "CM-RNG-005": ("cuda.manual_seed", lambda _real: cuda.manual_seed_all),
    "CM-RNG-006": ("cuda.set_rng_state", answer(None)),
    "CM-RNG-007": ("cuda.set_rng_state_all", answer(None)),
    "CM-RNG-008": ("torch.rand", without("generator")),
    "CM-RNG-009": ("torch.rand", without("generator")),
    "CM-RNG-010": ("torch.rand", without("generator")),
    "CM-RNG-011": ("torch.multinomial", without("generator")),
    "CM-RNG-012": ("torch.random.fork_rng", lambda _real: lambda **_k: contextlib.nullcontext()),
    "CM-RNG-013": ("torch.nn.functional.dropout", lambda _real: lambda x, p, training=True: x),
    "CM-RNG-014": ("torch.nn.init.normal_", lambda _real: lambda x, *_: x.data.fill_(next(grows))),
    "CM-RNG-015": ("torch.randn", lambda _real: torch.rand),
    "CM-DTYP-001": ("torch.tensor", lambda real: lambda *a, **k: real(*a, **k).float()),
    "CM-DTYP-002": ("Tensor.to", off_by_a_little),
    "CM-DTYP-003": ("Tensor.to", off_by_a_little),
    "CM-DTYP-004": ("Tensor.to", off_by_a_little),
    "CM-DTYP-005": ("Tensor.copy_", nothing),
    "CM-DTYP-006": ("Tensor.copy_", nothing),
    "CM-DTYP-010": ("Tensor.__sub__", on_device(Tensor.int)),
    "CM-DTYP-011": ("Tensor.__mod__", on_device(lambda x: x + 1)),
    "CM-DTYP-012": ("Tensor.__mod__", on_device(lambda x: x + 1)),
    "CM-DTYP-013": ("Tensor.__mod__", on_device(lambda x: x + 1)),
    "CM-DTYP-014": ("Tensor.__mod__", on_device(lambda x: x + 1)),
    "CM-DTYP-015": ("Tensor.masked_fill", nothing),
    "CM-DTYP-016": ("Tensor.conj", on_device(torch.abs)),
    "CM-DTYP-017": ("Tensor.conj", on_device(torch.abs)),
    "CM-DTYP-020": ("torch.set_float32_matmul_precision", answer(None)),
    "CM-DTYP-021": ("cuda.FloatTensor", lambda _real: torch.FloatTensor),
    "CM-DTYP-022": ("Tensor.type", nothing),
    "CM-DTYP-023": ("torch.set_default_tensor_type", answer(None)),
    "CM-DTYP-024": ("Tensor.long", changed(lambda x: x + 1)),
}
"""By check id: the name of an object as programs reach it, and what makes the wrong one."""
