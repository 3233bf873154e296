"""Tier T1: changes libc10's table of device names in memory, with ctypes alone.

libc10 keeps an array of (name, type) pairs from which it parses device strings. Writing the
accelerator's type behind ``cuda`` redirects every device string of the process at no cost per
call. In the cuda view the name of the out-of-tree slot, a std::string of libc10, is exchanged too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is

from cuda_morph.errors import TierError
from cuda_morph.interception import constructors, device_table
from cuda_morph.interception.tensor_attributes import cuda_method, is_cuda_property
from cuda_morph.torch_facts import SPARE_TABLE_ENTRY

if TYPE_CHECKING:
    from cuda_morph.interception import Target
    from cuda_morph.patching import Journal


class TableTier:
    """Redirects by one byte of libc10's device table."""

    name = "T1"

    def obstacle(self, target: Target) -> str:
        """See `Tier.obstacle`."""
        del target
        return device_table.obstacle()

    def apply(self, target: Target, journal: Journal) -> None:
        """See `Tier.apply`."""
        try:
            table = device_table.locate()
            journal.on_rollback(table.set_type("cuda", target.type_id))
            if target.masked:
                journal.on_rollback(
                    table.rename(SPARE_TABLE_ENTRY, target.device_type, target.type_id)
                )
                journal.on_rollback(device_table.rename_backend(target.device_type, "cuda"))
        except (OSError, LookupError) as error:
            raise TierError(f"Tier T1 does not work here: {error}.") from error
        _take_positional_options(journal)
        if target.policy.by_frame and target.masked:
            journal.set_type_attribute(torch.device, "type", _type_by_frame(target))
        journal.set_attribute(torch.Tensor, "cuda", cuda_method(target))
        journal.set_attribute(torch.Tensor, "is_cuda", is_cuda_property(target))

    def limits(self, target: Target) -> tuple[str, ...]:
        """See `Tier.limits`."""
        limits = []
        if constructors.mismatch(torch.Event):
            limits.append("torch.cuda.Event takes its options by keyword only.")
        if target.device_type == "cpu":
            limits.append(
                'torch.device("cuda:0") keeps its index: it differs from "cpu", and DataParallel, '
                "which compares the two, refuses the model."
            )
            limits.append(
                "A bare number is no device, except for cuda(): torch.zeros(2, device=0) raises; "
                'write "cuda:0".'
            )
        return tuple(limits)


def _take_positional_options(journal: Journal) -> None:
    """Lets ``torch.Event`` be built as CUDA's: ``Event(enable_timing, blocking, interprocess)``."""
    if constructors.mismatch(torch.Event):
        return
    original = constructors.original_constructor(torch.Event)

    def construct(cls: type, *args: Any, **kwargs: Any) -> Any:
        return original(cls, args, kwargs)

    constructors.replace_constructor(
        journal, torch.Event, constructors.cuda_event_constructor(construct)
    )


def _type_by_frame(target: Target) -> Any:
    """Returns a ``type`` attribute for torch.device that answers by the reader's package."""
    import sys

    original = vars(torch.device)["type"].__get__
    policy, native_name = target.policy, target.device_type

    def device_type(device: torch.device) -> str:
        name: str = original(device)
        if name == "cuda" and not policy.frame_sees_cuda(sys._getframe(1)):
            return native_name
        return name

    return property(device_type)
