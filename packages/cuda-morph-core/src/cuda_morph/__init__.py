"""cuda-morph: unchanged CUDA PyTorch code on any accelerator.

Importing this package changes nothing and imports neither torch nor a plugin.

Example:
    >>> import cuda_morph
    >>> with cuda_morph.activate("cpu"):
    ...     cuda_morph.is_active()
    True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuda_morph.activation import activate, deactivate, is_active
    from cuda_morph.compile_backend import ShapeBucketer, get_compile_backend
    from cuda_morph.errors import MorphError
    from cuda_morph.information import Info, info
    from cuda_morph.manifest import Activation

__all__ = [
    "Activation",
    "Info",
    "MorphError",
    "ShapeBucketer",
    "activate",
    "deactivate",
    "get_compile_backend",
    "get_version",
    "info",
    "is_active",
]

_HOMES = {
    "Activation": "cuda_morph.manifest",
    "Info": "cuda_morph.information",
    "MorphError": "cuda_morph.errors",
    "ShapeBucketer": "cuda_morph.compile_backend",
    "activate": "cuda_morph.activation",
    "deactivate": "cuda_morph.activation",
    "get_compile_backend": "cuda_morph.compile_backend",
    "info": "cuda_morph.information",
    "is_active": "cuda_morph.activation",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'cuda_morph' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def get_version() -> str:
    """Returns the installed version of cuda-morph-core, or ``unknown`` when run from source."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("cuda-morph-core")
    except PackageNotFoundError:
        return "unknown"
