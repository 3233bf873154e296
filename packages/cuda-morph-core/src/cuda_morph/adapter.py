"""The adapter's module of the active backend: the vendor's own, or what a simulation put there.

A plugin reaches its vendor's functions through `adapter_module` only, so the same code of the
plugin runs over the real adapter and over a simulated one.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from cuda_morph.errors import BackendUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

_fetch: Callable[[], Any] | None = None


def adapter_module() -> Any:
    """Returns the module of the active backend's adapter.

    Example:
        ``adapter_module().npu_fusion_attention(query, key, value, ...)``

    Returns:
        What importing ``Backend.adapter_module`` gives, or the simulated module in its place.

    Raises:
        BackendUnavailableError: No backend with an adapter is active.
    """
    if _fetch is None:
        raise BackendUnavailableError(
            "There is no adapter module: no backend with an adapter is active.",
            hint="Call cuda_morph.activate() first.",
        )
    return _fetch()


def provide(name: str | None, simulated: object = None) -> Callable[[], None]:
    """Says where the adapter's module comes from while an activation lasts.

    Args:
        name: The module to import when it is asked for.
        simulated: The module itself, when it cannot or must not be imported.

    Returns:
        A function that takes it back.
    """
    global _fetch
    previous = _fetch
    if simulated is not None:
        _fetch = lambda: simulated  # noqa: E731
    elif name is not None:
        _fetch = lambda: importlib.import_module(name)  # noqa: E731
    else:
        _fetch = None

    def take_back() -> None:
        global _fetch
        _fetch = previous

    return take_back
