"""Settings of NVIDIA's libraries that only a CUDA build takes: remembered, and never in force.

PyTorch refuses them on a build without the library, although nothing depends on them. The other
switches of ``torch.backends.cuda`` and ``torch.backends.cudnn`` are PyTorch's own on every build.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is

from cuda_morph import api_table
from cuda_morph.device.treatments import stub

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_morph.device.treatments import Notices
    from cuda_morph.patching import Journal

_MODULE = "torch.backends.cuda"
_MAX_PLANS = 4096
"""How many plans PyTorch's cache of cuFFT holds by default."""


def apply(journal: Journal, notices: Notices) -> None:
    """Lets a linear algebra library be preferred, and the cache of cuFFT plans be asked.

    Args:
        journal: Records the changes.
        notices: Where a setting says that it has no effect.
    """
    for library in ("linalg", "blas"):
        _remember_preference(journal, notices, library)
    _plan_cache(journal, notices)


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
