"""What ``torch.backends`` and ``torch.version`` say of NVIDIA's libraries and of the build.

Settings that only a CUDA build takes are remembered, and never in force: PyTorch refuses them on a
build without the library, although nothing depends on them. The other switches of
``torch.backends.cuda`` and ``torch.backends.cudnn`` are PyTorch's own on every build.

``torch.version.cuda`` stays ``None``: libraries take it for the proof of an NVIDIA toolkit. A
script that parses it unconditionally can be given a version with ``CUDA_MORPH_CUDA_VERSION``.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is

from cuda_morph import api_table, environment
from cuda_morph.device.treatments import stub

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_morph.device.treatments import Notices
    from cuda_morph.patching import Journal
    from cuda_morph.views import ViewPolicy

_MODULE = "torch.backends.cuda"
_MAX_PLANS = 4096
"""How many plans PyTorch's cache of cuFFT holds by default."""


def apply(journal: Journal, policy: ViewPolicy, notices: Notices) -> None:
    """Lets a linear algebra library be preferred, and the cache of cuFFT plans be asked.

    Args:
        journal: Records the changes.
        policy: Says who sees a build for CUDA.
        notices: Where a setting says that it has no effect.
    """
    _describe_build(journal, policy)
    for library in ("linalg", "blas"):
        _remember_preference(journal, notices, library)
    _plan_cache(journal, notices)


def _describe_build(journal: Journal, policy: ViewPolicy) -> None:
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


def _announced(name: str, function: Callable[..., Any], notices: Notices) -> Callable[..., Any]:
    public = f"{_MODULE}.{name}"
    return stub(public, api_table.by_name()[public].note, function, notices)


def _remember_preference(journal: Journal, notices: Notices, library: str) -> None:
    setter, getter = f"_set_{library}_preferred_backend", f"_get_{library}_preferred_backend"
    chosen = [getattr(torch._C, getter)()]

    def remember(preference: Any) -> None:
        chosen[0] = preference

    supplied = {
        setter: _announced(f"preferred_{library}_library", remember, notices),
        getter: lambda: chosen[0],
    }
    journal.update_mapping(vars(torch._C), supplied)


def _plan_cache(journal: Journal, notices: Notices) -> None:
    limits: dict[int, int] = {}

    def size(_index: int) -> int:
        return 0

    def limit(index: int) -> int:
        return limits.get(index, _MAX_PLANS)

    def clear(_index: int) -> None:
        """Nothing was planned."""

    set_limit = _announced("cufft_plan_cache.max_size", limits.__setitem__, notices)
    functions = {
        "_cufft_get_plan_cache_size": size,
        "_cufft_get_plan_cache_max_size": limit,
        "_cufft_set_plan_cache_max_size": set_limit,
        "_cufft_clear_plan_cache": clear,
    }
    journal.update_mapping(vars(torch), functions)
    # The class took the functions of torch when it was made.
    attributes = vars(torch.backends.cuda.cuFFTPlanCache)
    journal.set_attribute(attributes["size"], "getter", size)
    journal.set_attribute(attributes["max_size"], "getter", limit)
    journal.set_attribute(attributes["max_size"], "setter", set_limit)
