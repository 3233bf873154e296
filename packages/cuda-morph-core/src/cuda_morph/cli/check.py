"""``cuda-morph check``: every CUDA dependence of a source tree, judged for a target."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cuda_morph.cli import output
from cuda_morph.cli.paths import require_existing

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_morph.atomic_file import AtomicFile
    from cuda_morph.scan.check_report import CheckReport
    from cuda_morph.scan.file_scan import FileResult
    from cuda_morph.scan.settings import CheckSettings

FORMATS = ("text", "json", "sarif", "html", "csv", "markdown", "github")


def _codes(
    _context: click.Context, _option: click.Parameter, value: str | None
) -> tuple[str, ...] | None:
    """Reads a comma-separated list of codes or beginnings of codes."""
    from cuda_morph.scan.rules import RULES, selects

    if value is None:
        return None
    codes = tuple(part.strip().upper() for part in value.split(",") if part.strip())
    for code in codes:
        if not any(selects(code, rule) for rule in RULES):
            raise click.BadParameter(f"{code!r} is no rule and no beginning of one.")
    return codes


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path(path_type=Path))
@click.option("--target", metavar="NAME", help="Judge for this backend, by its plugin's records.")
@click.option(
    "--format", "style", type=click.Choice(FORMATS), default="text", help="How to write the report."
)
@click.option("--output", "file", type=click.Path(path_type=Path), help="Write the report here.")
@click.option("--select", callback=_codes, help="Only these rules, such as CM1,CM204.")
@click.option("--ignore", callback=_codes, help="Not these rules.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="Leave paths out; may be repeated.")
@click.option("--statistics", is_flag=True, help="Counts by rule instead of every finding.")
@click.option("--baseline", type=click.Path(path_type=Path), help="Report only what is not in it.")
@click.option(
    "--write-baseline", is_flag=True, help="Write what is found as known, report nothing."
)
@click.option(
    "--max-size", type=click.IntRange(min=1), help="Bytes above which a file is not read."
)
@click.option("--jobs", type=click.IntRange(min=1), help="Processes; default: one per processor.")
@click.option("--no-cache", is_flag=True, help="Read every file, also unchanged ones.")
@click.option("--isolated", is_flag=True, help="Ignore pyproject.toml.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 also when something was found.")
@click.option("--uncovered", is_flag=True, help="Only what leaves work to do.")
def check(**options: Any) -> int:
    r"""Find every CUDA dependence in PATHs, the current folder by default.

    Python is read by meaning: aliases are followed, and a string is a device only where a device
    is expected. Notebooks, shell scripts, requirements, images and C++ are read too. Each finding
    has a verdict: works unchanged, redirected, emulated, rewritable, unsupported or unknown.

    A line with "# noqa: CM204" is left out. Settings can stand in pyproject.toml, under
    [tool.cuda-morph.check].

    Exit codes: 0 nothing found, 1 something found, 2 error.

    \b
    Examples:
      cuda-morph check src --target ascend
      cuda-morph check . --uncovered --statistics
      cuda-morph check . --format html --output report.html
    """
    return _check(_Options(**options))


@dataclass(frozen=True)
class _Options:
    """What the command line says; ``None`` and empty leave it to the project's settings."""

    paths: tuple[Path, ...]
    target: str | None
    style: str
    file: Path | None
    select: tuple[str, ...] | None
    ignore: tuple[str, ...] | None
    exclude: tuple[str, ...]
    statistics: bool
    baseline: Path | None
    write_baseline: bool
    max_size: int | None
    jobs: int | None
    no_cache: bool
    isolated: bool
    exit_zero: bool
    uncovered: bool


def _check(options: _Options) -> int:
    from cuda_morph.atomic_file import AtomicFile
    from cuda_morph.scan.check_report import make_report
    from cuda_morph.scan.settings import CheckSettings, read_settings
    from cuda_morph.scan.verdict import COVERED, Judge

    paths = options.paths or (Path(),)
    require_existing(paths)
    file = None if options.file is None else AtomicFile(options.file)
    settings = CheckSettings() if options.isolated else read_settings(paths[0])
    judge = Judge(options.target or settings.target)
    report = make_report(
        _scan(paths, options, settings),
        judge,
        select=settings.select if options.select is None else options.select,
        ignore=settings.ignore if options.ignore is None else options.ignore,
    )
    known = options.baseline or _settings_baseline(settings)
    if options.write_baseline:
        return _write_known(known or Path("cuda-baseline.json"), report)
    report = _without_known(known, report)
    if options.uncovered:
        report = _filtered(report, lambda verdict: verdict not in COVERED)
    _write(report, options, file)
    return 0 if options.exit_zero else int(bool(report.rows))


def _scan(
    paths: tuple[Path, ...],
    options: _Options,
    settings: CheckSettings,
) -> list[FileResult]:
    from cuda_morph.scan.cache import Cache, default_file
    from cuda_morph.scan.project import scan_project
    from cuda_morph.scan.source_files import MAX_SIZE

    cache = Cache(default_file(list(paths))) if not options.no_cache else None
    with output.progress("Reading files") as advance:
        results = scan_project(
            paths,
            exclude=(*settings.exclude, *options.exclude),
            max_size=options.max_size or settings.max_size or MAX_SIZE,
            jobs=options.jobs,
            cache=cache,
            progress=advance,
        )
    if cache is not None:
        try:
            cache.save()
        except OSError as error:
            click.echo(f"warning: results were not cached: {error}", err=True)
    return results


def _settings_baseline(settings: CheckSettings) -> Path | None:
    if settings.baseline is None or settings.file is None:
        return None
    return settings.file.parent / settings.baseline


def _write_known(file: Path, report: CheckReport) -> int:
    from cuda_morph.scan.baseline import write_baseline

    write_baseline(file, report)
    click.echo(f"{len(report.rows)} findings are known now: {file}")
    return 0


def _without_known(file: Path | None, report: CheckReport) -> CheckReport:
    from cuda_morph.scan.baseline import apply_baseline

    return report if file is None else apply_baseline(file, report)


def _filtered(report: CheckReport, keep: Callable[[object], bool]) -> CheckReport:
    return replace(report, rows=tuple(row for row in report.rows if keep(row.judgement.verdict)))


def _write(report: CheckReport, options: _Options, file: AtomicFile | None) -> None:
    text = _render(report, options.style, statistics=options.statistics)
    if file is None:
        click.echo(text)
        return
    file.write(click.unstyle(text) + "\n", errors="surrogateescape")
    if sys.stderr.isatty():
        click.echo(f"Report written to {options.file}", err=True)


def _render(report: CheckReport, style: str, *, statistics: bool) -> str:
    from cuda_morph.scan import report_html, report_lists, report_sarif, report_text

    if style == "text":
        return report_text.render_text(report, statistics=statistics)
    if style == "json":
        return _render_json(report)
    renderers = {
        "sarif": report_sarif.render_sarif,
        "html": report_html.render_html,
        "csv": report_lists.render_csv,
        "markdown": report_lists.render_markdown,
        "github": report_lists.render_github,
    }
    return renderers[style](report)


def _render_json(report: CheckReport) -> str:
    import json

    from cuda_morph.scan.check_report import count

    document = {
        "target": report.target,
        "files": report.files,
        "lines": report.lines,
        "suppressed": report.suppressed,
        "known": report.known,
        "totals": report.totals.as_dict(),
        "by_file": {path: count(rows).as_dict() for path, rows in report.by_file().items()},
        "findings": [row.as_dict() for row in report.rows],
    }
    return json.dumps(document, indent=2)
