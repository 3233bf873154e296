"""The classes of failure that all vendors share, whatever number they give them.

`ErrorCode.semantic` and `ErrorRule.semantic` name one of these. The class decides which exception
of PyTorch a vendor's error becomes, so a program that catches ``torch.OutOfMemoryError`` works.
Each of those is a `RuntimeError`: what CUDA raises is one too, and programs catch that.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from cuda_morph.frozen_record import frozen_record

if TYPE_CHECKING:
    from collections.abc import Mapping

RUNTIME = "RuntimeError"
ACCELERATOR = "torch.AcceleratorError"
OUT_OF_MEMORY = "torch.OutOfMemoryError"
DIST = "torch.distributed.DistBackendError"
UNSUPPORTED = "NotImplementedError"


@frozen_record
class Semantic:
    """One class of failure."""

    id: str
    summary: str
    exception: str
    """Dotted name of the exception that a program written for CUDA would catch."""
    sticky: bool = False
    """True when the device context is unusable afterwards, as after CUDA's sticky errors."""


_ROWS: tuple[tuple[str, str, str, bool], ...] = (
    ("success", "No failure.", RUNTIME, False),
    ("out_of_memory", "Out of memory: the device has no more to give.", OUT_OF_MEMORY, False),
    ("host_out_of_memory", "Host memory is exhausted.", RUNTIME, False),
    ("invalid_argument", "An argument is out of range or of the wrong kind.", ACCELERATOR, False),
    ("invalid_handle", "A stream, event or kernel handle is not valid.", ACCELERATOR, False),
    ("invalid_state", "The call does not fit the present state.", ACCELERATOR, False),
    ("invalid_context", "The device context is missing, destroyed or in use.", ACCELERATOR, True),
    ("not_initialized", "Runtime or driver is not initialised.", ACCELERATOR, False),
    ("no_device", "There is no usable device.", RUNTIME, False),
    ("invalid_device", "The device index does not exist.", RUNTIME, False),
    ("device_lost", "The device has been lost or must be reset.", ACCELERATOR, True),
    ("hardware", "Memory or a link has an error that cannot be corrected.", ACCELERATOR, True),
    ("power", "The device is in a low power state.", ACCELERATOR, False),
    ("driver", "Driver and runtime do not go together.", RUNTIME, False),
    ("unsupported", "The operation is not supported.", UNSUPPORTED, False),
    ("permission", "The operation is not permitted.", RUNTIME, False),
    ("file", "A file or shared object is missing.", RUNTIME, False),
    ("operating_system", "A call to the operating system failed.", RUNTIME, False),
    ("not_ready", "Work is not finished yet; no failure by itself.", RUNTIME, False),
    ("timeout", "A time limit was exceeded.", ACCELERATOR, True),
    ("launch", "A kernel failed while it ran.", ACCELERATOR, True),
    ("launch_resources", "A launch needs more resources than there are.", ACCELERATOR, False),
    ("illegal_access", "A kernel made an invalid memory access.", ACCELERATOR, True),
    ("misaligned_access", "A kernel used a misaligned address.", ACCELERATOR, True),
    ("numeric", "A kernel met a number that was trapped: NaN, infinity, overflow.", RUNTIME, False),
    ("assertion", "An assertion in a kernel failed.", ACCELERATOR, True),
    ("architecture", "There is no kernel for this architecture.", RUNTIME, False),
    ("kernel_image", "A kernel's image or source is invalid.", RUNTIME, False),
    ("symbol", "A symbol was not found.", RUNTIME, False),
    ("build", "Compiling or linking a program failed.", RUNTIME, False),
    ("graph_capture", "A rule of graph capture was violated.", ACCELERATOR, False),
    ("graph_update", "A graph cannot be updated that way.", ACCELERATOR, False),
    ("peer_access", "Access between two devices is not possible.", ACCELERATOR, False),
    ("host_registration", "Registering host memory failed.", ACCELERATOR, False),
    ("texture", "Textures, arrays and graphics.", ACCELERATOR, False),
    ("profiler", "The profiler is in another state.", RUNTIME, False),
    ("service", "A multi-process service failed.", ACCELERATOR, False),
    ("collective_usage", "A collective was used wrongly.", DIST, False),
    ("collective_system", "A collective failed in the system or network.", DIST, False),
    ("collective_remote", "Another rank failed.", DIST, False),
    ("internal", "An error inside the vendor's software.", RUNTIME, False),
    ("unknown", "Not classified.", RUNTIME, False),
)

SEMANTICS: Mapping[str, Semantic] = MappingProxyType(
    {
        id_: Semantic(id=id_, summary=summary, exception=exception, sticky=sticky)
        for id_, summary, exception, sticky in _ROWS
    }
)
"""Every class by id."""


def is_semantic(id: str) -> bool:  # noqa: A002 - the word of the records
    """Tells whether an id is on the list.

    Args:
        id: For example ``out_of_memory``.

    Returns:
        True when records may use it.
    """
    return id in SEMANTICS
