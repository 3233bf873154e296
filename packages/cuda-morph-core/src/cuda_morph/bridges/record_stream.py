"""``Tensor.record_stream`` on the CPU: accepted, since no work is ever pending.

Official point: ``torch.library``. PyTorch has no kernel of this operator for CPU tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is

if TYPE_CHECKING:
    from cuda_morph.patching import Journal


def apply(journal: Journal) -> None:
    """Registers the kernel until rollback."""
    library = torch.library.Library("aten", "IMPL")
    journal.on_rollback(library._destroy)
    library.impl("record_stream", _accept, "CPU")


def _accept(_tensor: Any, _stream: Any) -> None:
    """Does nothing: memory of a CPU tensor is not reused before the work on it has finished."""
