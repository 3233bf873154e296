"""Every function that creates a tensor on a device; the list comes from PyTorch's schemas."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from world import declared_limit

CALLS = {
    "arange": lambda **k: torch.arange(3, **k),
    "as_tensor": lambda **k: torch.as_tensor([1.0], **k),
    "asarray": lambda **k: torch.asarray([1.0], **k),
    "bartlett_window": lambda **k: torch.bartlett_window(4, **k),
    "blackman_window": lambda **k: torch.blackman_window(4, **k),
    "empty": lambda **k: torch.empty(2, **k),
    "empty_like": lambda **k: torch.empty_like(torch.ones(2), **k),
    "empty_permuted": lambda **k: torch.empty_permuted((2, 3), (1, 0), **k),
    "empty_strided": lambda **k: torch.empty_strided((2,), (1,), **k),
    "eye": lambda **k: torch.eye(2, **k),
    "full": lambda **k: torch.full((2,), 3, **k),
    "full_like": lambda **k: torch.full_like(torch.ones(2), 3, **k),
    "hamming_window": lambda **k: torch.hamming_window(4, **k),
    "hann_window": lambda **k: torch.hann_window(4, **k),
    "kaiser_window": lambda **k: torch.kaiser_window(4, **k),
    "linspace": lambda **k: torch.linspace(0, 1, 3, **k),
    "logspace": lambda **k: torch.logspace(0, 1, 3, **k),
    "normal": lambda **k: torch.normal(0.0, 1.0, (2,), **k),
    "ones": lambda **k: torch.ones(2, **k),
    "ones_like": lambda **k: torch.ones_like(torch.ones(2), **k),
    "rand": lambda **k: torch.rand(2, **k),
    "rand_like": lambda **k: torch.rand_like(torch.ones(2), **k),
    "randint": lambda **k: torch.randint(3, (2,), **k),
    "randint_like": lambda **k: torch.randint_like(torch.ones(2), 3, **k),
    "randn": lambda **k: torch.randn(2, **k),
    "randn_like": lambda **k: torch.randn_like(torch.ones(2), **k),
    "randperm": lambda **k: torch.randperm(3, **k),
    "range": lambda **k: torch.range(0, 3, **k),
    "scalar_tensor": lambda **k: torch.scalar_tensor(2.0, **k),
    "tensor": lambda **k: torch.tensor([1, 2], **k),
    "tril_indices": lambda **k: torch.tril_indices(3, 3, **k),
    "triu_indices": lambda **k: torch.triu_indices(3, 3, **k),
    "zeros": lambda **k: torch.zeros(2, **k),
    "zeros_like": lambda **k: torch.zeros_like(torch.ones(2), **k),
}
SPARSE = {
    "sparse_coo_tensor": lambda **k: torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (2,), **k),
    "sparse_csr_tensor": lambda **k: torch.sparse_csr_tensor([0, 1], [0], [1.0], (1, 1), **k),
    "sparse_csc_tensor": lambda **k: torch.sparse_csc_tensor([0, 1], [0], [1.0], (1, 1), **k),
    "sparse_bsr_tensor": lambda **k: torch.sparse_bsr_tensor([0, 1], [0], [[[1.0]]], (1, 1), **k),
    "sparse_bsc_tensor": lambda **k: torch.sparse_bsc_tensor([0, 1], [0], [[[1.0]]], (1, 1), **k),
    "sparse_compressed_tensor": lambda **k: torch.sparse_compressed_tensor(
        [0, 1], [0], [1.0], (1, 1), layout=torch.sparse_csr, **k
    ),
}
NOT_FOR_DEVICES = {"from_file", "empty_quantized"}
"""Takes a device and refuses all but the CPU; quantised tensors need kernels of their own."""


def discovered() -> set[str]:
    found = {"asarray"}
    for name in vars(torch._C._VariableFunctionsClass):
        schemas = torch._C._jit_get_schemas_for_operator(f"aten::{name}")
        takes = any(
            argument.name == "device" for schema in schemas for argument in schema.arguments
        )
        if takes and not name.startswith("_"):
            found.add(name)
    return found


def check_the_list_is_complete(world):
    assert discovered() - NOT_FOR_DEVICES == CALLS.keys() | SPARSE.keys()


def check_strings(world):
    wrong = {}
    for name, call in CALLS.items():
        here, there = call(), call(device="cuda")
        if (there.device, there.dtype, there.shape) != (world.device(), here.dtype, here.shape):
            wrong[name] = there
    assert not wrong, wrong


def check_strings_with_index_and_devices(world):
    last = world.devices - 1
    for spelling in (f"cuda:{last}", torch.device("cuda", last)):
        devices = {name: call(device=spelling).device for name, call in CALLS.items()}
        assert set(devices.values()) == {world.device(last)}, devices


def check_sparse(world):
    wrong = {}
    for name, call in SPARSE.items():
        tensor = call(device="cuda")
        if tensor.device != world.device() or tensor.layout != call().layout:
            wrong[name] = tensor
    assert not wrong, wrong


def check_fft(world):
    for call in (torch.fft.fftfreq, torch.fft.rfftfreq):
        assert call(4, device="cuda").device == world.device()


def check_signal_windows(world):
    from torch.signal import windows

    devices = {
        name: getattr(windows, name)(5, device="cuda", **NEEDED.get(name, {})).device
        for name in windows.__all__
    }
    assert set(devices.values()) == {world.device()}, devices


NEEDED = {"general_cosine": {"a": [0.5, 0.5]}, "general_hamming": {"alpha": 0.5}}


def check_nested(world):
    nested = torch.nested.nested_tensor(
        [torch.ones(2), torch.ones(3)], layout=torch.jagged, device="cuda"
    )
    assert nested.device == world.device()


def check_from_file_names_are_no_devices(world):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cuda"
        path.write_bytes(b"\0" * 8)
        assert torch.from_file(str(path), size=2).tolist() == [0, 0]


def check_dtype_and_options_survive(world):
    tensor = torch.zeros(2, dtype=torch.float64, device="cuda", requires_grad=True)
    assert (tensor.dtype, tensor.requires_grad) == (torch.float64, True)
    out = torch.empty(2, device="cuda")
    assert torch.ones(2, out=out, device="cuda") is out


def check_default_dtype(world):
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.ones(1, device="cuda").dtype == torch.float64
        assert torch.tensor(1.0, device="cuda").dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def check_wrong_arguments_still_fail(world):
    for call in (
        lambda: torch.zeros(2, device=1.5),
        lambda: torch.zeros(2, devise="cuda"),
        lambda: torch.zeros("cuda"),
    ):
        try:
            call()
        except TypeError:
            continue
        raise AssertionError("accepted")


def check_operators_take_devices(world):
    assert torch.ops.aten.zeros([2], device=torch.device("cuda")).device == world.device()


@declared_limit("in calls of torch.ops", tiers=("T3",))
def check_operators_take_strings(world):
    assert torch.ops.aten.zeros([2], device="cuda").device == world.device()
    assert torch.ops.aten.zeros.default([2], device="cuda").device == world.device()
