"""A process group for the simulated device under any backend name, with that library's limits.

The device's memory is host memory, so gloo does the work on the device's own bytes; the native half
makes the aliases. Registration is the one that a vendor's adapter does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded by the loader only, when torch already is

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import timedelta

OPERATIONS = frozenset(
    (
        "broadcast",
        "all_reduce",
        "reduce",
        "all_gather",
        "reduce_scatter",
        "gather",
        "scatter",
        "all_to_all",
        "send",
        "recv",
        "barrier",
    )
)
"""What ``ops`` may name of collectives."""

REDUCTIONS = frozenset(("sum", "avg", "product", "min", "max", "band", "bor", "bxor", "premul_sum"))
"""What ``ops`` may name of reductions."""


def register(
    name: str, device_type: str, *, ops: Iterable[str] = (), dtypes: Iterable[str] = ()
) -> bool:
    """Register a backend of torch.distributed for the simulated device.

    Args:
        name: The backend's name, e.g. ``hccl``.
        device_type: The device type it serves; it becomes that type's default.
        ops: Names of `OPERATIONS` and `REDUCTIONS` that the library has, or with a minus sign
            those that it lacks. Where none of a kind is named, it has all of that kind.
        dtypes: Dtypes that the library takes, e.g. ``float32``; none named: all. A pair
            ``float64:float32`` says that the first travels as the second.

    Returns:
        Whether torch.distributed is there at all.

    Raises:
        ValueError: A word is none of `OPERATIONS` and `REDUCTIONS`, or names no dtype.
    """
    if not torch.distributed.is_available():
        return False
    words = frozenset(ops)
    unknown = sorted({word.removeprefix("-") for word in words} - OPERATIONS - REDUCTIONS)
    if unknown:
        raise ValueError(f"{name}: no collective and no reduction is called {', '.join(unknown)}")
    accepted, narrowed = _dtypes(name, dtypes)
    limits = (_present(words, OPERATIONS), _present(words, REDUCTIONS), accepted, narrowed)

    def create(store: Any, rank: int, size: int, timeout: timedelta) -> Any:
        from cuda_morph_sim.loader import native_module

        # A store outlives groups: gloo would find the addresses of an earlier one in it.
        generation = store.add(f"generation of rank {rank}", 1)
        own = torch.distributed.PrefixStore(f"generation {generation}", store)
        host = torch.distributed.ProcessGroupGloo(own, rank, size, timeout=timeout)
        return native_module().make_process_group(host, name, *limits)

    torch.distributed.Backend.register_backend(name, create, devices=[device_type])
    return True


def _present(words: frozenset[str], kind: frozenset[str]) -> tuple[str, ...]:
    """Returns what the library has of a kind; empty stands for all."""
    absent = {word for word in kind if f"-{word}" in words}
    present = words & kind or (kind if absent else frozenset())
    return tuple(present - absent)


def _dtypes(
    name: str, dtypes: Iterable[str]
) -> tuple[tuple[torch.dtype, ...], tuple[tuple[torch.dtype, torch.dtype], ...]]:
    accepted: list[torch.dtype] = []
    narrowed: list[tuple[torch.dtype, torch.dtype]] = []
    for text in dtypes:
        wide, _, narrow = text.partition(":")
        accepted.append(_dtype(name, wide))
        if narrow:
            narrowed.append((accepted[-1], _dtype(name, narrow)))
    return tuple(accepted), tuple(narrowed)


def _dtype(name: str, word: str) -> torch.dtype:
    found = getattr(torch, word, None)
    if not isinstance(found, torch.dtype):
        raise ValueError(  # noqa: TRY004 - the word has the right type
            f"{name}: {word!r} is no dtype of torch"
        )
    return found
