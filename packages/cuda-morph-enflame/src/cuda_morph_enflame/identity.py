"""Who the accelerator is, what must be installed for it, and how its versions are read.

Sources: a public copy of torch_gcu 2.10.0, whose README names EnflameTechnology/torch-gcu;
EnflameTechnology/vllm-gcu.
"""

from __future__ import annotations

import re

from cuda_morph.adapter_detection import Advice
from cuda_morph.records import Backend, CollectiveBackend

NAME = "enflame"

KEEP_INTEGERS = "TORCH_GCU_ENABLE_INT64_AND_UINT64"
"""Without it torch_gcu stores 64-bit integers in 32 bits, and says nothing."""

BACKEND = Backend(
    name=NAME,
    display_name="Enflame GCU",
    vendor="Enflame",
    device_type="gcu",
    adapter_module="torch_gcu",
    collective_backend="eccl",
    visible_devices_env="TOPS_VISIBLE_DEVICES",
    spec="1.0",
    runtime_requires=("torch_gcu",),
    smi="efsmi",
    homepage="https://github.com/EnflameTechnology/torch-gcu",
    alloc_conf_env="PYTORCH_GCU_ALLOC_CONF",
    launch_blocking_env="TOPS_LAUNCH_BLOCKING",
    env_defaults={KEEP_INTEGERS: "true"},
    native_libraries=("torch_gcu",),
)

ADVICE = Advice(
    install="Use the vendor's container image, or build torch_gcu from source: it is not on PyPI.",
    libraries="Install TopsRider and add /opt/tops/lib to LD_LIBRARY_PATH.",
    driver="Run efsmi: it lists the cards when the driver works.",
    shim="Do not import torch_gcu.transfer_to_gcu in the same process.",
)

SHIMS = ("torch_gcu.transfer_to_gcu",)

COLLECTIVES = (
    CollectiveBackend(
        name="eccl",
        device_types=("gcu",),
        env_map={
            "PYTORCH_NO_CUDA_MEMORY_CACHING": "PYTORCH_NO_GCU_MEMORY_CACHING",
            "PYTORCH_NVML_BASED_CUDA_CHECK": "PYTORCH_EFML_BASED_GCU_CHECK",
        },
    ),
)
"""torch_gcu registers it. It sends float64 as float32, and has the average among its reductions."""


def required_torch(adapter_version: str) -> str | None:
    """Reads the PyTorch that a version of torch_gcu is made for: the same minor version.

    Args:
        adapter_version: For example ``2.10.0+3.7``.

    Returns:
        For example ``2.10``.
    """
    minor = re.match(r"\d+\.\d+", adapter_version)
    return minor[0] if minor else None
