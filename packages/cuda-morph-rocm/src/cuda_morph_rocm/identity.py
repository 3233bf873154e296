"""Who the accelerator is, and what must be installed for it.

ROCm builds of PyTorch answer to CUDA's names, so cuda-morph leaves the device as it is.
Sources: PyTorch 2.13; HIP 7.1 headers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuda_morph.adapter_detection import Advice
from cuda_morph.records import Backend, CollectiveBackend

if TYPE_CHECKING:
    from cuda_morph.torch_build import TorchBuild

NAME = "rocm"

BACKEND = Backend(
    name=NAME,
    display_name="AMD ROCm",
    vendor="AMD",
    device_type="cuda",
    adapter_module=None,
    collective_backend="nccl",
    visible_devices_env="HIP_VISIBLE_DEVICES",
    spec="1.0",
    smi="rocm-smi",
    homepage="https://rocm.docs.amd.com",
    alloc_conf_env="PYTORCH_HIP_ALLOC_CONF",
)

ADVICE = Advice(
    install="Install PyTorch for ROCm: pip install torch --index-url "
    "https://download.pytorch.org/whl/rocm<version>",
    libraries="PyTorch's wheels bring ROCm's libraries along; reinstall the wheel, or check "
    "LD_LIBRARY_PATH and ROCM_HOME.",
    driver="Run rocm-smi: it lists the cards when the kernel driver works.",
)

COLLECTIVES = (CollectiveBackend(name="nccl", device_types=("cuda",)),)
"""RCCL, which PyTorch calls nccl."""


def wrong_build(build: TorchBuild) -> str:
    """Tells whether PyTorch was built for something else.

    Args:
        build: The PyTorch that is installed.

    Returns:
        What is wrong, or nothing.
    """
    return "" if build.hip else f"PyTorch {build.version} is not built for ROCm."
