"""Tier T0: the compiled hooks of cuda-morph-native."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch  # noqa: TID253 - loaded at activation only, when torch already is

from cuda_morph.errors import TierError

if TYPE_CHECKING:
    from cuda_morph.interception import Target
    from cuda_morph.patching import Journal


_INTERFACE = 1
"""CUDA_MORPH_INTERFACE of the extension that this file was written for."""


class NativeTier:
    """Hooks the one C++ function that turns strings into devices, and three C-level attributes."""

    name = "T0"

    def obstacle(self, target: Target) -> str:
        """See `Tier.obstacle`."""
        del target
        try:
            import cuda_morph_native
        except ImportError:
            return "cuda-morph-native is not installed"
        if not cuda_morph_native.AVAILABLE:
            return cuda_morph_native.REASON
        interface = getattr(cuda_morph_native.native, "INTERFACE", 0)
        if interface != _INTERFACE:
            return (
                f"the installed cuda-morph-native has interface {interface}, this core needs "
                f"{_INTERFACE}; install matching versions"
            )
        return ""

    def apply(self, target: Target, journal: Journal) -> None:
        """See `Tier.apply`."""
        from cuda_morph_native import native

        policy = target.policy
        native.set_native_packages(policy.native_packages)
        journal.on_rollback(native.unhook_device_strings)
        try:
            native.hook_device_strings(target.type_id, target.device_type, target.masked)
        except (OSError, ValueError) as error:
            raise TierError(f"Tier T0 does not work here: {error}.") from error
        journal.on_rollback(native.unhook_device_class)
        native.hook_device_class(torch.device, target.device_type == "cpu")
        journal.on_rollback(native.unhook_event_class)
        native.hook_event_class(torch.Event)
        if target.masked:
            journal.on_rollback(lambda: native.unmask_device_type(torch.device))
            native.mask_device_type(
                torch.device, target.type_id, target.device_type, policy.by_frame
            )
        base = torch._C.TensorBase
        journal.set_attribute(torch.Tensor, "cuda", native.make_cuda_method(base, target.device))
        journal.set_attribute(
            torch.Tensor,
            "is_cuda",
            native.make_is_cuda(base, vars(base)["device"], target.type_id, policy.by_frame),
        )

    def limits(self, target: Target) -> tuple[str, ...]:
        """See `Tier.limits`."""
        del target
        return ()
