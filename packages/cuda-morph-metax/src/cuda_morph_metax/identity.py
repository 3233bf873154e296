"""Who the accelerator is, and what must be installed for it.

The vendor's build of PyTorch answers to CUDA's names, so cuda-morph leaves the device as it is.
Sources: MetaX-MACA/vLLM-metax, mcPytorch, maca-samples. There is no module torch_maca.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuda_morph.adapter_detection import Advice
from cuda_morph.records import Backend, CollectiveBackend

if TYPE_CHECKING:
    from cuda_morph.torch_build import TorchBuild

NAME = "metax"

BACKEND = Backend(
    name=NAME,
    display_name="MetaX",
    vendor="MetaX",
    device_type="cuda",
    adapter_module=None,
    collective_backend="nccl",
    visible_devices_env="CUDA_VISIBLE_DEVICES",
    spec="1.0",
    smi="mx-smi",
    homepage="https://github.com/MetaX-MACA",
    alloc_conf_env="PYTORCH_CUDA_ALLOC_CONF",
    launch_blocking_env="CUDA_LAUNCH_BLOCKING",
)

ADVICE = Advice(
    install="Install the vendor's PyTorch: pip install torch --index-url "
    "https://repos.metax-tech.com/r/maca-pypi/simple",
    libraries="Install MACA, set MACA_PATH and add its lib folder to LD_LIBRARY_PATH.",
    driver="Run mx-smi: it lists the cards when the driver works.",
)

COLLECTIVES = (CollectiveBackend(name="nccl", device_types=("cuda",)),)
"""The vendor's library, which its PyTorch calls nccl."""


def wrong_build(build: TorchBuild) -> str:
    """Tells whether PyTorch was built for something else.

    Args:
        build: The PyTorch that is installed.

    Returns:
        What is wrong, or nothing.
    """
    local = build.version.partition("+")[2]
    return "" if local.startswith("metax") else f"PyTorch {build.version} is not MetaX's build."
