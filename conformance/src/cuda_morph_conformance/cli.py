"""``cuda-morph-conformance``: list the checklist, run it on plugins, judge certificates.

Exit codes: 0 nothing is wrong; 1 a check failed or is missing, a certificate does not add up, or it
got worse; 2 the command could not be carried out.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cuda_morph.errors import MorphError
from cuda_morph_conformance.checks import load_all
from cuda_morph_conformance.registry import CHECKS
from cuda_morph_conformance.report_text import render_checklist, render_report, render_table
from cuda_morph_conformance.runner import LIMIT, installed_plugins
from cuda_morph_conformance.vocabulary import VIEWS, Level

if TYPE_CHECKING:
    from collections.abc import Callable

_LEVELS = click.Choice([level.value for level in Level])
_FORMAT = click.option(
    "--format", "style", type=click.Choice(["text", "json"]), default="text", help="Output format."
)
_PATH = click.Path(path_type=Path)

_DEVELOPMENT = ("level", "ids", "pattern", "view", "time_limit", "fail_fast", "style", "verbose")
"""Options of `run` that shrink or change a run, and have no place in a certificate."""


def _reported(command: Callable[..., Any]) -> Callable[..., Any]:
    """Shows what the user got wrong as one message, and exits with code 2."""

    @functools.wraps(command)
    def inner(*arguments: Any, **options: Any) -> Any:
        try:
            return command(*arguments, **options)
        except MorphError as error:
            click.echo(str(error), err=True)
            raise SystemExit(2) from None

    return inner


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="cuda-morph-conformance")
def main() -> None:
    """One checklist for every cuda-morph plugin."""


@main.command("list")
@click.option("--level", type=_LEVELS, help="Only this one.")
@_FORMAT
def list_checks(level: str | None, style: str) -> None:
    """Print the checklist."""
    load_all()
    checks = [check for check in CHECKS.values() if level in {None, check.level.value}]
    if style == "text":
        click.echo(render_checklist(checks) or f"No check of the level {level} exists yet.")
        return
    fields = ("id", "level", "must", "fix", "requires", "since", "devices", "views")
    rows = [{name: getattr(check, name) for name in fields} for check in checks]
    click.echo(json.dumps(rows, indent=2))


@main.command()
@click.option("--plugin", "plugins", multiple=True, metavar="NAME", help="Plugin; may be repeated.")
@click.option("--all", "everything", is_flag=True, help="Every plugin installed here.")
@click.option("--certify", is_flag=True, help="Write certificates; takes no filter.")
@click.option("--out", type=_PATH, metavar="DIR", help="Folder for certificates.")
@click.option("--waivers", type=_PATH, metavar="FILE", help="Waivers, as TOML.")
@click.option(
    "--with-torch-suite", "torch_suite", is_flag=True, help="Record PyTorch's own tests as well."
)
@click.option("--level", type=_LEVELS, help="Checks up to this level.")
@click.option("--check", "ids", multiple=True, metavar="ID", help="This check; may be repeated.")
@click.option("-k", "pattern", metavar="TEXT", help="Checks whose id or sentence contains this.")
@click.option("--view", type=click.Choice(VIEWS), help="Only this view.")
@click.option("-x", "--fail-fast", is_flag=True, help="End at the first failure.")
@click.option("-v", "--verbose", is_flag=True, help="Also list what passed.")
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0, min_open=True),
    default=LIMIT,
    show_default=True,
    help="Seconds that one check may take.",
)
@_FORMAT
@click.pass_context
@_reported
def run(
    context: click.Context,
    plugins: tuple[str, ...],
    out: Path | None,
    waivers: Path | None,
    *,
    everything: bool,
    certify: bool,
    torch_suite: bool,
    **options: Any,
) -> None:
    """Go through the checklist with one or more plugins."""
    if bool(plugins) == everything:
        raise click.UsageError("Name a plugin with --plugin, or use --all.")
    names = installed_plugins() if everything else tuple(dict.fromkeys(plugins))
    if not certify:
        if out is not None or torch_suite:
            raise click.UsageError("--out and --with-torch-suite go with --certify.")
        raise SystemExit(_develop(names, waivers, options))
    default = click.core.ParameterSource.DEFAULT
    refused = [name for name in _DEVELOPMENT if context.get_parameter_source(name) is not default]
    if refused:
        flags = [item.opts[-1] for item in context.command.params if item.name in refused]
        raise click.UsageError(f"--certify takes no {', '.join(sorted(flags))}: it runs all.")
    if out is None:
        raise click.UsageError("--certify needs --out DIR.")
    from cuda_morph_conformance.certify import Request, start

    file = str(waivers.resolve()) if waivers else None
    raise SystemExit(
        start(Request(plugins=names, out=str(out.resolve()), waivers=file, torch_suite=torch_suite))
    )


def _develop(names: tuple[str, ...], waivers: Path | None, options: dict[str, Any]) -> int:
    from cuda_morph_conformance.certificate import make_certificate
    from cuda_morph_conformance.examination import choose_keys, examine
    from cuda_morph_conformance.waivers import read_waivers

    load_all()
    unknown = sorted(set(options["ids"]) - set(CHECKS))
    if unknown:
        raise click.UsageError(f"No check has the id {', '.join(unknown)}.")
    filters = {name: options[name] for name in ("level", "ids", "view")}
    keys = choose_keys(pattern=options["pattern"] or "", **filters)
    if not keys:
        raise click.UsageError("No check is left by these options.")
    reports = examine(
        names,
        keys=keys,
        waivers=read_waivers(waivers) if waivers else (),
        limit=options["time_limit"],
        fail_fast=options["fail_fast"],
    )
    if options["style"] == "json":
        click.echo(json.dumps([make_certificate(report) for report in reports], indent=2))
    else:
        texts = [render_report(report, verbose=options["verbose"]) for report in reports]
        click.echo("\n\n".join([*texts, *([render_table(reports)] if len(reports) > 1 else [])]))
    return 0 if all(report.clean for report in reports) else 1


@main.command()
@click.argument("certificates", nargs=-1, required=True, type=_PATH)
@_reported
def verify(certificates: tuple[Path, ...]) -> None:
    """Recompute what certificates say, and name what does not add up."""
    from cuda_morph_conformance.certificate import read_certificate
    from cuda_morph_conformance.verify import find_problems, notes

    bad = False
    for path in certificates:
        certificate = read_certificate(path)
        problems = find_problems(certificate)
        bad = bad or bool(problems)
        click.echo(f"{path}: {len(problems)} problems" if problems else f"{path}: it adds up")
        for line in problems:
            click.echo(f"  problem: {line}")
        for line in () if problems else notes(certificate):
            click.echo(f"  {line}")
    raise SystemExit(1 if bad else 0)


@main.command()
@click.argument("old", type=_PATH)
@click.argument("new", type=_PATH)
@_reported
def diff(old: Path, new: Path) -> None:
    """Compare two certificates, regressions first."""
    from cuda_morph_conformance.certificate import read_certificate
    from cuda_morph_conformance.compare import compare, render_changes

    changes = compare(read_certificate(old), read_certificate(new))
    click.echo(render_changes(changes))
    raise SystemExit(1 if changes.regressions else 0)


@main.command()
@click.argument("folder", type=_PATH)
@click.option("--html", is_flag=True, help="A page instead of Markdown.")
@_reported
def matrix(folder: Path, *, html: bool) -> None:
    """Render the support matrix from a folder of verified certificates."""
    from cuda_morph_conformance.matrix import read_folder, render_html, render_markdown

    certificates = read_folder(folder)
    click.echo(render_html(certificates) if html else render_markdown(certificates))
