"""What PyTorch says about its own build, where the cuda view needs another answer.

``torch.version.cuda`` stays ``None``: libraries take it for the proof of an NVIDIA toolkit. A
script that parses it unconditionally can be given a version with ``CUDA_MORPH_CUDA_VERSION``.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import torch  # noqa: TID253 - loaded at activation only, when torch already is

from cuda_morph import environment

if TYPE_CHECKING:
    from cuda_morph.patching import Journal
    from cuda_morph.views import ViewPolicy


def apply(journal: Journal, policy: ViewPolicy) -> None:
    """Makes ``torch.backends.cuda.is_built`` follow the view, and sets a version on request."""
    version = environment.read(environment.CUDA_VERSION)
    if version is not None:
        journal.set_attribute(torch.version, "cuda", version)
    # cuDNN is NVIDIA's: recurrent layers take their portable path, on a CUDA build too.
    journal.redirect_function(torch.backends.cudnn.is_acceptable, lambda _tensor: False)
    if policy.view != "cuda":
        return

    def is_built() -> bool:
        # Frame 0 is this function, frame 1 torch.backends.cuda.is_built, frame 2 the reader.
        return policy.frame_sees_cuda(sys._getframe(2))

    journal.redirect_function(torch.backends.cuda.is_built, is_built)
