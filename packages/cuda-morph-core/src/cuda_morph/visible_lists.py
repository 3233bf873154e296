"""How runtimes read a variable of visible devices: what they accept, and what silently hides all.

For authors of plugins. Each reader takes the variable's text and returns what is wrong with it in
one sentence, empty when nothing is.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_LEADING_NUMBER = re.compile(r"\s*[+-]?\d+")


def integers(text: str) -> str:
    """Judges a list that takes plain integers only.

    Args:
        text: The value of the variable.

    Returns:
        What is wrong, or nothing.
    """
    wrong = [item for item in _items(text) if not item.strip().isdecimal()]
    return f"{wrong[0]!r} is no plain number, so no device is visible." if wrong else ""


def ascending_integers(text: str) -> str:
    """Judges a list of plain integers that must ascend.

    Args:
        text: The value of the variable.

    Returns:
        What is wrong, or nothing.
    """
    problem = integers(text)
    if problem:
        return problem
    numbers = [int(item) for item in _items(text)]
    if any(later <= earlier for earlier, later in pairwise(numbers)):
        return "The numbers do not rise, so no device is visible."
    return ""


def cuda_like(prefixes: tuple[str, ...]) -> Callable[[str], str]:
    """Makes the reader of a list that follows the rules of ``CUDA_VISIBLE_DEVICES``.

    The number at the start of an item counts, a duplicate hides every device, a negative number
    ends the list, and identifiers start with one of some prefixes.

    Args:
        prefixes: Beginnings of identifiers, such as ``GPU-``.

    Returns:
        The reader.
    """

    def read(text: str) -> str:
        seen: set[str] = set()
        for item in _items(text):
            word = item.strip()
            number = _LEADING_NUMBER.match(word)
            if number is None and not word.startswith(prefixes):
                return f"{word!r} is neither a number nor an identifier; the list ends before it."
            key = str(int(number[0])) if number else word
            if number and int(number[0]) < 0:
                return f"{word!r} is negative; the list ends before it."
            if key in seen:
                return f"{word!r} is there twice, so no device is visible."
            seen.add(key)
        return ""

    return read


def _items(text: str) -> list[str]:
    return text.split(",") if text.strip() else []
