"""Records kept in JSON files beside a plugin: facts as data, with their sources.

For authors of plugins. A file of records has groups; what the rows of a group share is said once::

    {"groups": [{"common": {"family": "mcError", "source": "mychip.h 1.2"},
                 "rows": [{"code": "2", "name": "MC_OOM", "meaning": "Memory is exhausted."}]}]}

The words are those of the record's fields. Further keys of the file and of a group are for readers
of the file. A file is read when it is first asked for, and its records are checked then.
"""

from __future__ import annotations

import json
from dataclasses import fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from cuda_morph.errors import PluginError
from cuda_morph.hook_calls import field_problem
from cuda_morph.records import AdapterSurface, ErrorCode, Support, SurfaceName, Treatment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from enum import Enum
    from pathlib import Path

_Record = TypeVar("_Record")
_ENUMERATIONS: dict[str, type[Enum]] = {"Support": Support, "Treatment": Treatment}
_read: dict[tuple[Path, type], tuple[Any, ...]] = {}


def read_records(path: Path, record_type: type[_Record]) -> tuple[_Record, ...]:
    """Reads a file of records.

    Args:
        path: A JSON file with ``groups``, as described above.
        record_type: A class of :mod:`cuda_morph.records`.

    Returns:
        The records in the file's order. Reading the same file again costs nothing.

    Raises:
        PluginError: The file cannot be read, or an entry is not such a record.

    Example:
        >>> from pathlib import Path
        >>> from cuda_morph.records import ErrorCode
        >>> DATA = Path(__file__).with_name("data")
        >>> def cuda_morph_error_codes():
        ...     return read_records(DATA / "error_codes.json", ErrorCode)
    """
    known = _read.get((path, record_type))
    if known is not None:
        return known
    content = _content(path)
    made: list[_Record] = []
    for number, group in enumerate(_list(content.get("groups"), path, "groups")):
        where = f"groups[{number}]"
        common = group.get("common", {}) if isinstance(group, dict) else None
        if not isinstance(common, dict):
            raise _error(path, where, "is no object with the objects common and rows")
        for index, row in enumerate(_list(group.get("rows"), path, f"{where}.rows")):
            made.append(_record(path, f"{where}.rows[{index}]", record_type, common, row))
    return _read.setdefault((path, record_type), tuple(made))


@lru_cache(maxsize=8)
def read_surface(path: Path) -> AdapterSurface:
    """Reads the names of an adapter's device module.

    Args:
        path: A JSON file with the fields of `AdapterSurface`, its names as objects.

    Returns:
        The surface.

    Raises:
        PluginError: The file cannot be read, or an entry is not such a record.
    """
    content = _content(path)
    names = tuple(
        _record(path, f"names[{index}]", SurfaceName, {}, row)
        for index, row in enumerate(_list(content.get("names"), path, "names"))
    )
    own = {key: content.get(key) for key in ("module", "version", "source")}
    return _record(path, "the file", AdapterSurface, {**own, "names": names}, {})


def read_error_texts(path: Path, names: Sequence[str]) -> dict[str, str]:
    """Writes sentences for a simulated device from a table of error codes.

    For adapters whose own wording is not known: the sentence is name, code and meaning.

    Args:
        path: A file of `ErrorCode` records.
        names: Entries of it, each of another class of failure.

    Returns:
        The sentences by `ErrorCode.semantic`.

    Raises:
        PluginError: The file cannot be read, or an entry is not in it.
    """
    rows = {row.name: row for row in read_records(path, ErrorCode)}
    missing = [name for name in names if name not in rows]
    if missing:
        raise _error(path, missing[0], "is not there")
    found = [rows[name] for name in names]
    return {row.semantic: f"{row.name} ({row.code}): {row.meaning}" for row in found}


@lru_cache(maxsize=16)
def read_map(path: Path, key: str = "map") -> dict[str, str]:
    """Reads a table of texts, such as a map of symbols or of environment variables.

    Args:
        path: A JSON file.
        key: Its member that holds the table.

    Returns:
        The table, to be left as it is.

    Raises:
        PluginError: The file cannot be read, or the table holds something else than texts.
    """
    table = _content(path).get(key)
    if not isinstance(table, dict):
        raise _error(path, key, "is missing or no object")
    for name, text in table.items():
        if not isinstance(text, str):
            raise _error(path, f"{key}[{name!r}]", f"must be a text, got {text!r:.60}")
    return table


def _content(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _error(path, "the file", f"cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise _error(path, "the file", f"is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise _error(path, "the file", "must hold an object")
    return content


def _list(value: object, path: Path, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise _error(path, where, "is missing or no list")
    return value


def _record(
    path: Path, where: str, record_type: type[_Record], common: dict[str, Any], row: object
) -> _Record:
    if not isinstance(row, dict):
        raise _error(path, where, f"must be an object, got {row!r:.60}")
    values = {**common, **row}
    for item in fields(record_type):  # type: ignore[arg-type]
        name = item.name
        if name in values:
            values[name] = _converted(values[name], str(item.type), path, f"{where}.{name}")
    try:
        made = record_type(**values)
    except TypeError as error:
        raise _error(path, where, str(error).partition("() ")[2] or str(error)) from error
    problem = field_problem(made)
    if problem:
        raise _error(path, where, problem)
    return made


def _converted(value: Any, annotation: str, path: Path, where: str) -> Any:
    """Turns what JSON has into what the field takes: lists to tuples, words to enumerations."""
    if isinstance(value, list):
        return tuple(value)
    choices = _ENUMERATIONS.get(annotation)
    if choices is None or not isinstance(value, str):
        return value
    try:
        return choices(value)
    except ValueError:
        words = ", ".join(str(choice.value) for choice in choices)
        raise _error(path, where, f"is {value!r}, which is none of {words}") from None


def _error(path: Path, where: str, problem: str) -> PluginError:
    return PluginError(
        f"{path.parent.name}/{path.name}: {where} {problem}.",
        hint=f"The file belongs to an installed plugin: {path}",
    )
