"""``cuda-morph-conformance``: list the checklist, run it on plugins.

Exit codes: 0 every check passed, 1 a check failed or is missing, 2 the run could not be made.
"""

from __future__ import annotations

import json

import click

from cuda_morph.errors import MorphError
from cuda_morph_conformance.checks import load_all
from cuda_morph_conformance.registry import CHECKS
from cuda_morph_conformance.report_text import render_checklist, render_report
from cuda_morph_conformance.runner import LIMIT, installed_plugins, keys_of, run_plugin
from cuda_morph_conformance.vocabulary import VIEWS, Level

_FORMAT = click.option(
    "--format", "style", type=click.Choice(["text", "json"]), default="text", help="Output format."
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="cuda-morph-conformance")
def main() -> None:
    """One checklist for every cuda-morph plugin."""


@main.command("list")
@click.option("--level", type=click.Choice([level.value for level in Level]), help="Only this one.")
@_FORMAT
def list_checks(level: str | None, style: str) -> None:
    """Print the checklist."""
    load_all()
    checks = [check for check in CHECKS.values() if level in {None, check.level.value}]
    if style == "text":
        click.echo(render_checklist(checks) or f"No check of the level {level} exists yet.")
        return
    fields = ("id", "level", "must", "fix", "requires", "since", "devices")
    rows = [{name: getattr(check, name) for name in fields} for check in checks]
    click.echo(json.dumps(rows, indent=2))


@main.command()
@click.option("--plugin", "plugins", multiple=True, metavar="NAME", help="Plugin; may be repeated.")
@click.option("--level", type=click.Choice([level.value for level in Level]), help="Up to this.")
@click.option("--check", "ids", multiple=True, metavar="ID", help="This check; may be repeated.")
@click.option("-k", "pattern", default="", help="Checks whose id or sentence contains this.")
@click.option("--view", type=click.Choice(VIEWS), help="Only this view.")
@click.option("--all", "everything", is_flag=True, help="Every plugin installed here.")
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0, min_open=True),
    default=LIMIT,
    show_default=True,
    help="Seconds that one check may take.",
)
@_FORMAT
def run(
    plugins: tuple[str, ...],
    level: str | None,
    ids: tuple[str, ...],
    pattern: str,
    view: str | None,
    style: str,
    time_limit: float,
    *,
    everything: bool,
) -> None:
    """Go through the checklist with one or more plugins."""
    if bool(plugins) == everything:
        raise click.UsageError("Name a plugin with --plugin, or use --all.")
    names = installed_plugins() if everything else tuple(dict.fromkeys(plugins))
    load_all()
    chosen = [
        key
        for check in CHECKS.values()
        for key in keys_of(check)
        if (not ids or check.id in ids)
        and (not level or check.level.rank <= Level(level).rank)
        and pattern.lower() in f"{check.id} {check.must}".lower()
        and view in {None, key[1]}
    ]
    try:
        reports = [run_plugin(name, keys=chosen, limit=time_limit) for name in names]
    except MorphError as error:
        click.echo(str(error), err=True)
        raise SystemExit(2) from None
    if style == "json":
        click.echo(json.dumps([report.as_dict() for report in reports], indent=2))
    else:
        click.echo("\n\n".join(render_report(report) for report in reports))
    raise SystemExit(0 if all(report.clean for report in reports) else 1)
