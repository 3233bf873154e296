"""``cuda-morph error``: what a vendor's error code means and what to do about it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from cuda_morph.cli import output

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cuda_morph.error_lookup import ErrorTable, Match


@click.command(context_settings={"ignore_unknown_options": True})  # codes may be negative
@click.argument("queries", nargs=-1, metavar="[CODE]...")
@click.option("--backend", metavar="NAME", help="Only this plugin's codes.")
@output.format_option
def error(queries: tuple[str, ...], backend: str | None, output_format: str) -> int:
    r"""Explain error codes: numbers, names, or whole lines of a log.

    Without CODE, a log is read from standard input and every code in it is explained. A number
    that several vendors use is explained for each of them; --backend picks one.

    Exit code 1 when a code, or everything in the log, is unknown.

    \b
    Examples:
      cuda-morph error 507035
      cuda-morph error --backend musa 700
      cuda-morph error EI0006
      cuda-morph error < train.log
    """
    from cuda_morph.error_lookup import error_table

    table = error_table(backend)
    if queries:
        answers = [(query, _look_up(table, query)) for query in queries]
    else:
        answers = list(_read_log(table))
    unknown = [query for query, matches in answers if not matches]
    if output_format == "json":
        output.write_json([_as_dict(query, matches) for query, matches in answers])
    else:
        for query, matches in answers:
            _write(query, matches)
        _write_unknown(table, unknown, backend)
    if not answers:
        click.echo("No known error code in the text read from standard input.", err=True)
    return int(bool(unknown) or not answers)


def _look_up(table: ErrorTable, query: str) -> tuple[Match, ...]:
    """A query is a code; one with words around it is a line of a log."""
    return table.lookup(query) or table.search(query)


def _read_log(table: ErrorTable) -> Iterator[tuple[str, tuple[Match, ...]]]:
    if sys.stdin.isatty():
        raise click.UsageError("Name a code, or give a log on standard input.")
    seen: set[tuple[str, str, str]] = set()
    for line in _lines(sys.stdin.buffer):
        matches = tuple(match for match in table.search(line) if match.entry.semantic != "success")
        new = [match for match in matches if _key(match) not in seen]
        seen.update(map(_key, new))
        if new:
            yield line, tuple(new)


def _lines(stream: Iterable[bytes]) -> Iterator[str]:
    for line in stream:
        yield line.decode("utf-8", errors="replace").rstrip("\r\n")


def _key(match: Match) -> tuple[str, str, str]:
    return (match.plugin, match.entry.code, match.entry.name)


def _as_dict(query: str, matches: tuple[Match, ...]) -> dict[str, object]:
    return {"query": query, "matches": [match.as_dict() for match in matches]}


def _write(query: str, matches: tuple[Match, ...]) -> None:
    if not matches:
        return
    shown = output.one_line(" ".join(query.split()))
    several = f"  ({len(matches)} meanings)" if len(matches) > 1 else ""
    click.secho(f"{shown}{several}", bold=True)
    for match in matches:
        entry = match.entry
        name = "" if entry.name == entry.code else f"  {entry.name}"
        family = f"  [{entry.family}]" if entry.family else ""
        click.echo(f"  {match.plugin}  {entry.code}{name}{family}")
        click.echo(f"    meaning  {entry.meaning}")
        if entry.remedy:
            click.echo(f"    remedy   {entry.remedy}")
        click.echo(f"    class    {entry.semantic}")
        if entry.source:
            click.echo(f"    source   {entry.source}")


def _write_unknown(table: ErrorTable, unknown: list[str], backend: str | None) -> None:
    for query in unknown:
        where = f"plugin {backend!r}" if backend else "any installed plugin"
        click.echo(f"{output.one_line(query)}: unknown; no entry of {where} has it.", err=True)
        close = table.close_names(query)
        if close:
            click.echo(f"  next step: did you mean {', '.join(close)}?", err=True)
        elif not table.entries:
            click.echo("  next step: install the plugin of your accelerator.", err=True)
