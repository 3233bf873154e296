"""How torch.distributed serves the simulated device.

Its own backend is `BACKEND`, registered as a vendor's adapter registers one. Gloo, which on CUDA
machines takes CUDA tensors too, takes the simulated device's.
"""

from __future__ import annotations

import torch  # noqa: TID253 - loaded by the loader only, when torch already is

from cuda_morph_sim import process_group

BACKEND = "simccl"
GLOO = "gloo"


def register(device_type: str, name: str = BACKEND) -> bool:
    """Name the collective backends of a device type.

    Args:
        device_type: The simulated device's type.
        name: Its own backend.

    Returns:
        Whether torch.distributed is there at all.
    """
    if not process_group.register(name, device_type):
        return False
    serve_by_gloo(device_type)
    return True


def serve_by_gloo(device_type: str) -> None:
    """Let ``init_process_group("gloo")`` take the device's tensors, as it takes CUDA's.

    Args:
        device_type: The simulated device's type.
    """
    if not torch.distributed.is_available():
        return
    served = torch.distributed.Backend.backend_capability.get(GLOO, [])
    if device_type not in served:
        served.append(device_type)
