"""Who the accelerator is, what must be installed for it, and how its versions are read.

Sources: torch_npu 2.13.0 wheel; Ascend/pytorch documentation, 2026-08; hicann/runtime.
"""

from __future__ import annotations

import os
import re

from cuda_morph.adapter_detection import Advice
from cuda_morph.records import Backend, CollectiveBackend

NAME = "ascend"

BACKEND = Backend(
    name=NAME,
    display_name="Huawei Ascend",
    vendor="Huawei",
    device_type="npu",
    adapter_module="torch_npu",
    collective_backend="hccl",
    visible_devices_env="ASCEND_RT_VISIBLE_DEVICES",
    spec="1.0",
    runtime_requires=("torch-npu",),
    smi="npu-smi",
    homepage="https://github.com/Ascend/pytorch",
    alloc_conf_env="PYTORCH_NPU_ALLOC_CONF",
    launch_blocking_env="ASCEND_LAUNCH_BLOCKING",
    # transformers, trl, peft and accelerate: apis_config.json of torch_npu; deepspeed has an
    # accelerator of its own for npu.
    native_libraries=("torch_npu", "transformers", "trl", "peft", "accelerate", "deepspeed"),
)

ADVICE = Advice(
    install="Install PyTorch and torch-npu of the same minor version: pip install torch-npu.",
    libraries="Load CANN's environment first: source /usr/local/Ascend/ascend-toolkit/set_env.sh",
    driver="Run npu-smi info: it lists the cards when the driver and the firmware work.",
    shim="Unset TORCH_TRANSFER_TO_NPU and do not import torch_npu.contrib.transfer_to_npu.",
)

SHIMS = ("torch_npu.contrib.transfer_to_npu",)

COLLECTIVES = (
    CollectiveBackend(
        name="hccl",
        device_types=("npu",),
        env_map={
            "PYTORCH_NO_CUDA_MEMORY_CACHING": "PYTORCH_NO_NPU_MEMORY_CACHING",
            "PYTORCH_NVML_BASED_CUDA_CHECK": "PYTORCH_HAL_BASED_NPU_CHECK",
        },
    ),
)
"""torch_npu registers it. Limits of its operations and dtypes are not known, so none are listed."""

CAPABILITY_VARIABLE = "TORCH_NPU_DEVICE_CAPABILITY"


def required_torch(adapter_version: str) -> str | None:
    """Reads the PyTorch that a version of torch_npu is made for: the same minor version.

    Args:
        adapter_version: For example ``2.10.0.post4``.

    Returns:
        For example ``2.10``.
    """
    minor = re.match(r"\d+\.\d+", adapter_version)
    return minor[0] if minor else None


def compute_capability() -> tuple[int, int]:
    """Reads the pair that torch_npu itself would answer.

    Without the variable torch_npu says ``None``, which no program can compare. Then it is
    ``(0, 0)``: code that asks for a certain generation of NVIDIA's takes its general path.

    Returns:
        Major and minor number.
    """
    pair = re.fullmatch(r"\s*(\d+)\.(\d+)\s*", os.environ.get(CAPABILITY_VARIABLE, ""))
    return (int(pair[1]), int(pair[2])) if pair else (0, 0)
