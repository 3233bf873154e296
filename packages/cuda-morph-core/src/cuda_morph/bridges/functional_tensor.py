"""``Tensor.cuda`` under tracing on the CPU.

Upstream: ``torch/_subclasses/functional_tensor.py`` turns ``cuda()`` into a move to the current
device's *number*. A number on the CPU makes ``cpu:0``, which the tracer takes for another device
than ``cpu``. Can go when PyTorch passes a device object there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch._subclasses.functional_tensor import (  # noqa: TID253 - torch is loaded by now
    FunctionalTensor,
)

if TYPE_CHECKING:
    from cuda_morph.interception.tier import Target
    from cuda_morph.patching import Journal


def apply(journal: Journal, target: Target) -> None:
    """Redirects the traced ``cuda()`` to the target device itself."""

    def cuda(self: Any, device: Any = None, *args: Any, **kwargs: Any) -> Any:
        named = device is not None and not isinstance(device, int)
        return self.to(device if named else target.device, *args, **kwargs)

    journal.redirect_function(FunctionalTensor.cuda, cuda)
