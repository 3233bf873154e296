"""Waivers: checks that a plugin may fail for a known reason, until a date."""

from __future__ import annotations

import datetime as dt
import sys
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from cuda_morph.errors import SettingError
from cuda_morph_conformance.vocabulary import VIEWS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_REQUIRED = ("check", "plugin", "reason", "issue", "expires")
_KNOWN = frozenset({*_REQUIRED, "view", "versions"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiver:
    """One table ``[[waiver]]`` of a waiver file."""

    check: str
    plugin: str
    reason: str
    issue: str
    """Address of the public discussion of the problem."""
    expires: str
    """Last day on which it holds, such as ``2027-03-31``."""
    view: str | None = None
    """``None``: both views."""
    versions: str = ""
    """Versions of the plugin that it holds for, as pip writes them; empty: all."""

    def matches(self, check: str, view: str | None, *, plugin: str, version: str | None) -> bool:
        """Tell whether it concerns a result, whatever the date.

        Args:
            check: The check's id.
            view: The view it was made in.
            plugin: Name of the plugin.
            version: Version of the plugin's distribution.
        """
        named = (self.check, self.plugin) == (check, plugin) and self.view in {None, view}
        return named and (not self.versions or SpecifierSet(self.versions).contains(version or "0"))

    def expired(self, today: dt.date) -> bool:
        """Tell whether its last day is over.

        Args:
            today: The day to judge by.
        """
        return dt.date.fromisoformat(self.expires) < today


def current_day() -> dt.date:
    """Returns the day by which waivers are judged: today in UTC, the same for everyone."""
    return dt.datetime.now(dt.timezone.utc).date()


def read_waivers(path: Path) -> tuple[Waiver, ...]:
    """Read a waiver file.

    Args:
        path: A TOML file with tables ``[[waiver]]``.

    Returns:
        The waivers, in the order of the file.

    Raises:
        SettingError: The file cannot be read, or a waiver lacks something or says it wrongly.
    """
    # Python 3.10 has no reader of TOML; the distribution asks for tomli there.
    tomllib = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        with path.open("rb") as file:
            content = tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise SettingError(f"{path} cannot be read: {error}") from error
    rows = content.get("waiver", [])
    if set(content) - {"waiver"} or not isinstance(rows, list):
        raise SettingError(f"{path} holds more than tables [[waiver]].")
    return tuple(parse_waiver(row, f"{path}, waiver {n}") for n, row in enumerate(rows, 1))


def parse_waiver(row: dict[str, Any], where: str) -> Waiver:
    """Make a waiver of its fields.

    Args:
        row: The fields as read from TOML or JSON.
        where: What to call it in an error.

    Returns:
        The waiver.

    Raises:
        SettingError: A field is absent, unknown or malformed.
    """
    fields = {key: str(value) for key, value in row.items() if value not in (None, "")}
    problems = [f"{name} is not given" for name in _REQUIRED if not fields.get(name, "").strip()]
    problems += [f"{name} is no field of a waiver" for name in fields if name not in _KNOWN]
    if fields.get("view", VIEWS[0]) not in VIEWS:
        problems.append(f"view is {fields['view']!r}")
    if not fields.get("issue", "https://").startswith(("https://", "http://")):
        problems.append("issue is no address")
    try:
        dt.date.fromisoformat(fields.get("expires", "2000-01-01"))
        SpecifierSet(fields.get("versions", ""))
    except (ValueError, InvalidSpecifier) as error:
        problems.append(str(error))
    if problems:
        raise SettingError(
            f"{where}: {'; '.join(problems)}.",
            hint="A waiver has check, plugin, reason, issue, expires = 2027-03-31, and optionally "
            "view and versions.",
        )
    return Waiver(**fields)


def find_waiver(
    waivers: Iterable[Waiver],
    check: str,
    view: str | None,
    *,
    plugin: str,
    version: str | None,
    today: dt.date,
) -> Waiver | None:
    """Find the waiver that holds for a result.

    Args:
        waivers: Where to look.
        check: The check's id.
        view: The view it was made in.
        plugin: Name of the plugin.
        version: Version of the plugin's distribution.
        today: The day to judge by.

    Returns:
        The first that matches and has not expired.
    """
    for waiver in waivers:
        held = waiver.matches(check, view, plugin=plugin, version=version)
        if held and not waiver.expired(today):
            return waiver
    return None
