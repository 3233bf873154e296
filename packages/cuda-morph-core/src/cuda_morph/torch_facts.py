"""Facts about PyTorch that change between versions or builds, in one place.

Everything here was checked on the versions in `TESTED_TORCH`; other versions are tried, proved by
the self-test at activation, and reported by ``cuda-morph info`` as untested.
"""

from __future__ import annotations

from importlib import metadata

TESTED_TORCH = ("2.13",)
"""Minor versions of PyTorch on which the test suite of this release ran."""

DEVICE_TYPE_IDS = {"cpu": 0, "cuda": 1, "xpu": 12, "mps": 13, "hpu": 15, "mtia": 19}
"""c10::DeviceType by name, for the types that PyTorch has built in (c10/core/DeviceType.h)."""

INDUCTOR_DEVICE_TYPES = ("cpu", "cuda", "xpu")
"""Device types that inductor, as PyTorch ships it, makes code for."""

PRIVATE_USE_ONE = 20
"""c10::DeviceType::PrivateUse1, the slot of every out-of-tree backend."""

SPARE_TABLE_ENTRY = "opengl"
"""Name in libc10's device table that no PyTorch of the last years uses."""

NVIDIA_DRIVER_READERS = ("triton.backends.nvidia",)
"""Modules that take ``torch.cuda.is_available()`` for the presence of an NVIDIA driver, and load it
next: Triton's own driver for NVIDIA cards (``triton/backends/nvidia/driver.py``, 3.8)."""

INTERNAL_CUDA_READERS = ("torch.amp.", "torch.cuda.amp.")
"""Modules of torch that must see CUDA in the native view too, or they switch themselves off:
``GradScaler("cuda")`` and ``autocast("cuda")`` disable themselves without it."""


def torch_version() -> str | None:
    """Returns the installed version of torch without importing it, or ``None``."""
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return None


def is_tested(version: str) -> bool:
    """Returns whether the suite of this release ran on that version of torch."""
    return any(version.startswith(f"{tested}.") for tested in TESTED_TORCH)


DEVICE_FUNCTIONS = {
    "asarray": "device",
    "_C._nested.nested_tensor": "device",
    "_C.set_autocast_enabled": "*device_type",
    "_C.is_autocast_enabled": "*device_type",
    "_C.set_autocast_dtype": "*device_type",
    "_C.get_autocast_dtype": "*device_type",
    "_C._is_autocast_available": "*device_type",
    "_C._dispatch_key_for_device": "*device_type",
}
"""C functions that parse a device string and have no operator schema that says so, below
``torch``, with the parameter's name; a star: it may also be the first positional argument.
From the stubs in torch/_C; a test compares this list with them."""

DEVICE_TENSOR_METHODS = ("new", "new_tensor", "_make_wrapper_subclass")
"""Likewise for the methods of ``torch.Tensor``."""
