"""PyTorch's operator database, and the choice of entries and dtypes from it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from cuda_morph.errors import SettingError, TorchMissingError

if TYPE_CHECKING:
    from collections.abc import Sequence

DTYPES = ("float32", "float16", "bfloat16", "complex64", "int64", "bool")
"""Dtypes that are compared when none is named."""

QUICK_DTYPES = ("float32", "int64")
QUICK_ENTRIES = 60

_KNOWN = (
    *("float64", "float32", "float16", "bfloat16"),
    *("complex128", "complex64", "complex32"),
    *("int64", "int32", "int16", "int8", "uint8", "bool"),
)


def load() -> list[Any]:
    """Returns all entries.

    Raises:
        TorchMissingError: PyTorch, or what its database needs, is not installed.
    """
    try:
        from torch.testing._internal.common_methods_invocations import op_db
    except ImportError as error:
        raise TorchMissingError(
            f"PyTorch's operator database cannot be imported: {error}.",
            hint="Install PyTorch and what its database needs: pip install expecttest numpy",
        ) from error
    return list(op_db)


def parse_dtypes(text: str | None, *, quick: bool) -> tuple[str, ...]:
    """Reads a comma-separated list of dtypes.

    Args:
        text: The list, with or without ``torch.``; ``None``: the usual ones.
        quick: Few where none is named.

    Returns:
        Names, each once.

    Raises:
        SettingError: A name is no dtype that can be compared.
    """
    if text is None:
        return QUICK_DTYPES if quick else DTYPES
    names = [part.strip().removeprefix("torch.") for part in text.split(",") if part.strip()]
    unknown = [name for name in names if name not in _KNOWN]
    if unknown or not names:
        raise SettingError(
            f"No dtype that can be compared: {', '.join(unknown) or repr(text)}.",
            hint=f"Choose from {', '.join(_KNOWN)}.",
        )
    return tuple(dict.fromkeys(names))


def compile_pattern(text: str | None) -> re.Pattern[str] | None:
    """Reads the regular expression for operator names.

    Raises:
        SettingError: It is none.
    """
    if text is None:
        return None
    try:
        return re.compile(text)
    except re.error as error:
        raise SettingError(
            f"--ops {text!r} is no regular expression: {error}.",
            hint="Write for example --ops '^(add|mm|softmax)$'.",
        ) from None


def select(entries: Sequence[Any], count: int | None) -> list[Any]:
    """Chooses entries evenly over the alphabet, always the same ones.

    Args:
        entries: The operator database.
        count: How many; ``None`` or 0 means all.

    Returns:
        The chosen entries, sorted by name.
    """
    ordered = sorted(entries, key=lambda op: str(op.formatted_name))
    if not count or count >= len(ordered):
        return ordered
    return [ordered[i * len(ordered) // count] for i in range(count)]


def choose(entries: Sequence[Any], pattern: re.Pattern[str] | None, *, quick: bool) -> list[Any]:
    """Returns the entries to compare.

    Args:
        entries: The operator database.
        pattern: Found somewhere in the entry's name; ``None`` takes all.
        quick: A part of the database where no pattern is given.

    Raises:
        SettingError: No entry has such a name.
    """
    if pattern is None:
        return select(entries, QUICK_ENTRIES if quick else None)
    chosen = [op for op in select(entries, None) if pattern.search(op.formatted_name)]
    if not chosen:
        raise SettingError(
            f"No operator of PyTorch's database matches {pattern.pattern!r}.",
            hint="Names are those of PyTorch without 'torch.', such as add or nn_functional_relu.",
        )
    return chosen
