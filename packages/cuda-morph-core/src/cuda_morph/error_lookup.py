"""Finding vendors' error codes: by what a person typed, and inside a line of a log.

A bare number belongs to many vendors at once, so every match is returned; the caller decides
whether to list or to choose.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from cuda_morph.frozen_record import frozen_record
from cuda_morph.plugins import collect
from cuda_morph.records import ErrorCode, ErrorRule

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_NUMBER = re.compile(r"(0x[0-9a-f]+|-?\d+)", re.IGNORECASE)
_NUMBER_IN_TEXT = re.compile(
    r"\b(?:error(?:[ _-]?code)?|errno|code|ret(?:urn(?:ed)?)?(?:[ _]?(?:code|value))?|status)\b"
    r"(?:\s+is)?\s*[:=#(\[]*\s*(0x[0-9a-f]+\b|-?\d+\b)(?!\.\d)",
    re.IGNORECASE,
)
"""A number counts only behind a word that announces a code: logs are full of other numbers."""
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:::[A-Za-z_][A-Za-z0-9_]*)*")


@frozen_record
class Match:
    """One entry of one plugin's error table, and what it was found by."""

    plugin: str
    entry: ErrorCode
    found: str
    """The part of the text that named it."""
    by_name: bool
    """True when the text has its name or a code with letters; a number alone is weaker."""

    def as_dict(self) -> dict[str, object]:
        """Returns the match in a form ready for JSON."""
        entry = self.entry
        return {
            "plugin": self.plugin,
            "code": entry.code,
            "name": entry.name,
            "family": entry.family,
            "meaning": entry.meaning,
            "remedy": entry.remedy,
            "semantic": entry.semantic,
            "source": entry.source,
            "found": self.found,
        }


class ErrorTable:
    """The error codes and rules of some plugins, indexed.

    Args:
        records: Pairs of plugin name and record, as `collect` gives them.
    """

    def __init__(self, records: Iterable[tuple[str, ErrorCode | ErrorRule]]) -> None:
        self._by_word: dict[str, list[tuple[str, ErrorCode]]] = {}
        self._by_number: dict[int, list[tuple[str, ErrorCode]]] = {}
        self.rules: list[tuple[str, re.Pattern[str], str]] = []
        self.entries: list[tuple[str, ErrorCode]] = []
        for plugin, record in records:
            if isinstance(record, ErrorRule):
                self.rules.append((plugin, re.compile(record.pattern), record.semantic))
            else:
                self._add(plugin, record)

    def _add(self, plugin: str, entry: ErrorCode) -> None:
        self.entries.append((plugin, entry))
        number = as_number(entry.code)
        if number is not None:
            self._by_number.setdefault(number, []).append((plugin, entry))
        words = {entry.name.casefold(), entry.code.casefold()} if number is None else set()
        for word in words | {entry.name.casefold()}:
            self._by_word.setdefault(word, []).append((plugin, entry))

    def lookup(self, query: str) -> tuple[Match, ...]:
        """Finds what a person typed: a number in decimal or hexadecimal, a code, a name.

        Args:
            query: For example ``507035``, ``0x7BC83``, ``EI0006`` or ``cnrtErrorNoMem``.

        Returns:
            Every entry that it can mean, in the order of plugins.
        """
        text = query.strip()
        number = as_number(text)
        if number is not None:
            return _matches(self._by_number.get(number, ()), text, by_name=False)
        return _matches(self._by_word.get(text.casefold(), ()), text, by_name=True)

    def search(self, text: str) -> tuple[Match, ...]:
        """Finds the codes in a message or a line of a log.

        Args:
            text: Any text.

        Returns:
            Entries in the order of the text, names before bare numbers, none twice.
        """
        found = {(match.plugin, id(match.entry)): match for match in self._search(text)}
        return tuple(found.values())

    def _search(self, text: str) -> Iterator[Match]:
        for word in dict.fromkeys(_WORD.findall(text)):
            if word.casefold() in self._by_word:
                yield from self.lookup(word)
        for number in dict.fromkeys(_NUMBER_IN_TEXT.findall(text)):
            yield from self.lookup(number)

    def semantic_by_rule(self, text: str) -> str | None:
        """Returns the class of failure that the first rule matching the text gives."""
        return next((semantic for _, rule, semantic in self.rules if rule.search(text)), None)

    def close_names(self, query: str) -> list[str]:
        """Returns codes and names that look like the query, best first."""
        import difflib

        names = {entry.name for _, entry in self.entries}
        return difflib.get_close_matches(query.strip(), sorted(names), n=3, cutoff=0.75)


def as_number(text: str) -> int | None:
    """Reads a code as a number.

    Args:
        text: ``700``, ``0x2bc`` or ``-1``; anything else has letters of its own.

    Returns:
        The number, or ``None``.
    """
    match = _NUMBER.fullmatch(text.strip())
    return int(match[1], 0 if match[1].lower().startswith("0x") else 10) if match else None


@lru_cache(maxsize=16)
def error_table(plugin: str | None = None) -> ErrorTable:
    """Reads the error codes of one plugin or of all; kept for the process.

    Args:
        plugin: Its name; ``None`` for all that are installed.

    Returns:
        The table.

    Raises:
        UnknownBackendError: The named plugin is not installed.
        PluginError: The named plugin is broken.
    """
    return ErrorTable(collect("cuda_morph_error_codes", plugin=plugin))


def _matches(
    entries: Sequence[tuple[str, ErrorCode]], found: str, *, by_name: bool
) -> tuple[Match, ...]:
    return tuple(
        Match(plugin=plugin, entry=entry, found=found, by_name=by_name) for plugin, entry in entries
    )
