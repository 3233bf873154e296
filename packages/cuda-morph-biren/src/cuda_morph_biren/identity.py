"""Who the accelerator is, what must be installed for it, and how its versions are read.

Two adapters serve two generations of cards under the same device type: torch_supa for BR2xx and
torch_br for BR1xx. Sources: BIRENSUPA/torch-supa; a third party's report on torch_br; DeepSpeed
accelerator/.
"""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.util import find_spec

from cuda_morph.adapter_detection import Advice
from cuda_morph.records import Backend, CollectiveBackend

NAME = "biren"
ADAPTERS = ("torch_supa", "torch_br")

BACKEND = Backend(
    name=NAME,
    display_name="Biren",
    vendor="Biren",
    device_type="supa",
    adapter_module="torch_supa",
    collective_backend="bccl",
    visible_devices_env="SUPA_VISIBLE_DEVICES",
    spec="1.0",
    runtime_requires=("torch_supa",),
    smi="brsmi",
    homepage="https://github.com/BIRENSUPA/torch-supa",
    native_libraries=("torch_supa", "torch_br", "deepspeed"),
)

ADVICE = Advice(
    install="Use the vendor's release package or container image: neither torch_supa (BR2xx) nor "
    "torch_br (BR1xx) is on PyPI.",
    libraries="Load the SDK's environment first: source brsw_set_env.sh",
    driver="Run brsmi: it lists the cards when the driver works.",
    shim="torch_supa starts its layer whenever PyTorch is imported. Set "
    "TORCH_DEVICE_BACKEND_AUTOLOAD=0 before Python starts.",
)

SHIMS = ("torch_supa.contrib.transfer_to_supa",)

COLLECTIVES = (CollectiveBackend(name="bccl", device_types=("supa",)),)
"""The adapter registers it; limits of its operations and dtypes are not known."""


def backend() -> Backend:
    """Names the adapter that is installed.

    Returns:
        The identity with torch_br as adapter where only that one is there.
    """
    if find_spec("torch_supa") is None and find_spec("torch_br") is not None:
        return replace(BACKEND, adapter_module="torch_br", runtime_requires=("torch_br",))
    return BACKEND


def required_torch(adapter_version: str) -> str | None:
    """Reads the PyTorch that a version of the adapter is made for.

    Args:
        adapter_version: For example ``1.0.0.21200``.

    Returns:
        For example ``2.12``.
    """
    named = re.search(r"\.(\d)(\d\d)\d\d(?:\+|$)", adapter_version)
    return f"{int(named[1])}.{int(named[2])}" if named else None
