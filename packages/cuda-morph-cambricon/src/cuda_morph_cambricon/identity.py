"""Who the accelerator is, what must be installed for it, and how its versions are read.

Sources: Cambricon/torch_mlu r2.4_develop; DeepSpeed accelerator/; accelerate; transformers.
"""

from __future__ import annotations

import re
from pathlib import Path

from cuda_morph.adapter_detection import Advice
from cuda_morph.record_files import read_map
from cuda_morph.records import Backend, CollectiveBackend

NAME = "cambricon"
DATA = Path(__file__).with_name("data")

BACKEND = Backend(
    name=NAME,
    display_name="Cambricon MLU",
    vendor="Cambricon",
    device_type="mlu",
    adapter_module="torch_mlu",
    collective_backend="cncl",
    visible_devices_env="MLU_VISIBLE_DEVICES",
    spec="1.0",
    runtime_requires=("torch_mlu",),
    smi="cnmon",
    homepage="https://github.com/Cambricon/torch_mlu",
    alloc_conf_env="PYTORCH_MLU_ALLOC_CONF",
    native_libraries=("torch_mlu", "accelerate", "transformers", "deepspeed"),
)

ADVICE = Advice(
    install="Use the vendor's container image or wheels: torch_mlu is not on PyPI.",
    libraries="Install CNToolkit, set NEUWARE_HOME and add its lib64 folder to LD_LIBRARY_PATH.",
    driver="Run cnmon: it lists the cards when the driver works.",
    shim="Do not import torch_mlu.utils.gpu_migration in the same process.",
)

SHIMS = ("torch_mlu.utils.gpu_migration",)

OWN_FIELDS = ("CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING", "PYTORCH_CUDA_ALLOC_CONF")
"""Variables for which `Backend` has a field."""

CNCL_DTYPES = ("float32", "float16", "bfloat16", "int8", "uint8", "int32", "int64", "bool")
"""CNCL has no float64, and no average among its reductions; torch_mlu sends booleans as bytes."""


def collectives() -> tuple[CollectiveBackend, ...]:
    """Reads the vendor's table of variables for CNCL, which torch_mlu registers.

    Returns:
        The collective backend.
    """
    table = read_map(DATA / "environment.json")
    mapped = {name: own for name, own in table.items() if own and name not in OWN_FIELDS}
    record = CollectiveBackend(
        name="cncl",
        device_types=("mlu",),
        ops=("-avg",),
        dtypes=CNCL_DTYPES,
        env_map=mapped,
    )
    return (record,)


def required_torch(adapter_version: str) -> str | None:
    """Reads the PyTorch that a version of torch_mlu is made for.

    Args:
        adapter_version: For example ``1.25.0+torch2.4.1``.

    Returns:
        For example ``2.4``.
    """
    named = re.search(r"torch(\d+\.\d+)", adapter_version)
    return named[1] if named else None
