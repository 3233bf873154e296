"""Who the accelerator is, and what must be installed for it.

Sources: PyTorch 2.13, whose device type it is; DeepSpeed accelerator/; accelerate; transformers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuda_morph.adapter_detection import Advice
from cuda_morph.records import Backend, CollectiveBackend

if TYPE_CHECKING:
    from cuda_morph.torch_build import TorchBuild

NAME = "xpu"

BACKEND = Backend(
    name=NAME,
    display_name="Intel XPU",
    vendor="Intel",
    device_type="xpu",
    adapter_module=None,
    collective_backend="xccl",
    visible_devices_env="ZE_AFFINITY_MASK",
    spec="1.0",
    smi="xpu-smi",
    homepage="https://docs.pytorch.org/docs/stable/xpu.html",
    alloc_conf_env="PYTORCH_ALLOC_CONF",
    native_libraries=("accelerate", "transformers", "deepspeed"),
)

ADVICE = Advice(
    install="Install PyTorch for Intel GPUs: pip install torch --index-url "
    "https://download.pytorch.org/whl/xpu",
    libraries="PyTorch's wheels bring oneAPI's libraries along; reinstall the wheel, or check "
    "LD_LIBRARY_PATH and ONEAPI_ROOT.",
    driver="Run xpu-smi discovery: it lists the cards when the driver works.",
)

COLLECTIVES = (CollectiveBackend(name="xccl", device_types=("xpu",)),)
"""PyTorch registers it; limits of its operations and dtypes are not known."""


def wrong_build(build: TorchBuild) -> str:
    """Tells whether PyTorch was built for something else.

    Args:
        build: The PyTorch that is installed.

    Returns:
        What is wrong, or nothing.
    """
    return "" if build.xpu else f"PyTorch {build.version} is not built for Intel GPUs."
