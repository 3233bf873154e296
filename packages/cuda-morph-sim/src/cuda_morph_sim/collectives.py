"""Lets gloo, the CPU's collective backend, work for the simulated device.

The operators themselves are registered natively: a collective on device tensors runs on the same
bytes as CPU tensors. What is left is to tell torch.distributed that gloo serves this device type.
"""

from __future__ import annotations

import torch  # noqa: TID253 - loaded by the loader only, when torch already is

BACKEND = "gloo"


def register(device_type: str) -> bool:
    """Name gloo as the collective backend of a device type.

    Args:
        device_type: The simulated device's type.

    Returns:
        Whether torch.distributed is there at all.
    """
    if not torch.distributed.is_available():
        return False
    from torch.distributed import Backend

    served = Backend.backend_capability.get(BACKEND, [])
    if device_type not in served:
        served.append(device_type)
    Backend.default_device_backend_map.setdefault(device_type, BACKEND)
    return True
