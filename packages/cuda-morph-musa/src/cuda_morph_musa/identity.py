"""Who the accelerator is, what must be installed for it, and how its versions are read.

Sources: MooreThreads/torch_musa v2.7.1; DeepSpeed accelerator/; accelerate; transformers.
"""

from __future__ import annotations

from cuda_morph.adapter_detection import Advice
from cuda_morph.records import Backend, CollectiveBackend

NAME = "musa"

BACKEND = Backend(
    name=NAME,
    display_name="Moore Threads",
    vendor="Moore Threads",
    device_type="musa",
    adapter_module="torch_musa",
    collective_backend="mccl",
    visible_devices_env="MUSA_VISIBLE_DEVICES",
    spec="1.0",
    runtime_requires=("torch_musa",),
    smi="mthreads-gmi",
    homepage="https://github.com/MooreThreads/torch_musa",
    alloc_conf_env="PYTORCH_MUSA_ALLOC_CONF",
    launch_blocking_env="MUSA_LAUNCH_BLOCKING",
    native_libraries=("torch_musa", "accelerate", "transformers", "deepspeed"),
)

ADVICE = Advice(
    install="Use the vendor's container image or the wheels of its GitHub releases: torch_musa "
    "needs the PyTorch that the vendor patched.",
    libraries="Install the MUSA SDK, set MUSA_HOME and add its lib folder to LD_LIBRARY_PATH.",
    driver="Run mthreads-gmi: it lists the cards when the driver works. In a container "
    "MTHREADS_VISIBLE_DEVICES chooses them.",
    shim="Do not import torchada in the same process.",
)

SHIMS = ("torchada",)

COLLECTIVES = (
    CollectiveBackend(
        name="mccl",
        device_types=("musa",),
        dtypes=(
            "float32",
            "float64",
            "float16",
            "bfloat16",
            "int8",
            "uint8",
            "int32",
            "int64",
            "bool",
        ),
        env_map={"PYTORCH_NO_CUDA_MEMORY_CACHING": "PYTORCH_NO_MUSA_MEMORY_CACHING"},
    ),
)
"""torch_musa registers it; dtypes from the table of its process group. The cards S80 and S3000 have
no MCCL."""


def required_torch(adapter_version: str) -> str | None:
    """Reads the PyTorch that a version of torch_musa needs at least: the one of its own number.

    Args:
        adapter_version: For example ``2.7.1``.

    Returns:
        For example ``>=2.7.1``.
    """
    parts = adapter_version.partition("+")[0].split(".")[:3]
    return ">=" + ".".join(parts) if all(part.isdecimal() for part in parts) else None
