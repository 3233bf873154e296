"""``cuda-morph port``: CUDA code rewritten to device-generic PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cuda_morph.cli import output
from cuda_morph.cli.paths import require_existing

if TYPE_CHECKING:
    from cuda_morph.port.project import FilePlan


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path(path_type=Path))
@click.option("--activate", is_flag=True, help="Only add the lines that activate cuda-morph.")
@click.option("--unsafe", is_flag=True, help="Also changes whose meaning may differ.")
@click.option("--write", is_flag=True, help="Change the files; they can be put back with --undo.")
@click.option("--undo", is_flag=True, help="Put back the files of the newest port.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="Leave paths out; may be repeated.")
@click.option("--quiet", is_flag=True, help="No diff, only the summary.")
@output.format_option
def port(**options: Any) -> int:
    r"""Rewrite the Python files of PATHs for any accelerator; shows a diff unless --write is given.

    Device strings, .cuda(), torch.cuda, autocast and nccl become device-generic PyTorch
    (torch.accelerator and the device's own module). On machines with CUDA, and without any
    accelerator, the program does what it did. Formatting and comments stay. What cannot be
    rewritten is left as it is and listed.

    With --activate programs get two lines instead, and nothing else is touched.

    Exit codes: 0 nothing left to do by hand, 1 something is left, 2 error.

    \b
    Examples:
      cuda-morph port src
      cuda-morph port src --write
      cuda-morph port --undo
      cuda-morph port train.py --activate --write
    """
    return _port(_Options(**options))


@dataclass(frozen=True)
class _Options:
    """What the command line says."""

    paths: tuple[Path, ...]
    activate: bool
    unsafe: bool
    write: bool
    undo: bool
    exclude: tuple[str, ...]
    quiet: bool
    output_format: str


def _port(options: _Options) -> int:
    _require_libcst()
    from cuda_morph.port import journal
    from cuda_morph.port.project import plan

    if options.undo:
        return _undo(options)
    paths = options.paths or (Path(),)
    require_existing(paths)
    with output.progress("Porting files") as advance:
        plans = plan(
            paths,
            activate=options.activate,
            unsafe=options.unsafe,
            exclude=options.exclude,
            progress=advance,
        )
    changed = [item for item in plans if item.changed]
    backup = journal.write(plans, Path()) if options.write and changed else None
    if options.output_format == "json":
        output.write_json(_document(plans, backup))
    else:
        _write(plans, backup, options)
    return int(any(item.left or item.problem for item in plans) and not options.activate)


def _undo(options: _Options) -> int:
    from cuda_morph.errors import SettingError
    from cuda_morph.port import journal

    if options.paths or options.write or options.activate:
        raise SettingError("--undo takes no paths and no other action.", hint="Use it alone.")
    files = journal.undo(Path())
    if options.output_format == "json":
        output.write_json({"restored": [str(file) for file in files]})
    else:
        click.echo(f"{len(files)} files are as they were before.")
    return 0


def _require_libcst() -> None:
    try:
        import libcst  # noqa: F401 - only whether it is there matters
    except ImportError as error:
        from cuda_morph.errors import MorphError

        raise MorphError(
            "Porting needs libcst.",
            hint='Install it with  pip install "cuda-morph-core[cli]"',
            code="CM-E15",
        ) from error


def _document(plans: list[FilePlan], backup: Path | None) -> dict[str, Any]:
    return {
        "written": backup is not None,
        "backup": str(backup) if backup else None,
        "files": [
            {
                "path": str(item.path),
                "changed": item.changed,
                "rewritten": len(item.rewritten),
                "left": [
                    {"line": f.place.line, "rule": f.rule, "symbol": f.symbol} for f in item.left
                ],
                "unsafe_left": item.unsafe_left,
                "problem": item.problem or None,
                "diff": item.diff(),
            }
            for item in plans
        ],
    }


def _write(plans: list[FilePlan], backup: Path | None, options: _Options) -> None:
    if not options.quiet and backup is None:
        for item in plans:
            _write_diff(item.diff())
    for item in plans:
        if item.problem:
            click.echo(f"{item.path}: {item.problem}", err=True)
        for found in item.left if not options.activate else ():
            click.echo(
                f"{item.path}:{found.place.line}:{found.place.column}: {found.rule} "
                f"{found.symbol}: left as it is",
                err=True,
            )
    changed = sum(item.changed for item in plans)
    rewritten = sum(len(item.rewritten) for item in plans)
    left = 0 if options.activate else sum(len(item.left) for item in plans)
    unsafe = sum(item.unsafe_left for item in plans)
    what = f"{rewritten} places in " if not options.activate else ""
    done = "rewritten" if backup else "would be rewritten"
    click.echo(f"{what}{changed} files {done}; {left} places left as they are.", err=True)
    if unsafe:
        click.echo(f"{unsafe} of them can be rewritten with --unsafe.", err=True)
    if backup:
        click.echo(
            f"The old files are in {backup}; cuda-morph port --undo puts them back.", err=True
        )


def _write_diff(text: str) -> None:
    for line in text.splitlines():
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        bold = line.startswith(("+++", "---"))
        click.echo(click.style(line, fg=None if bold else colour, bold=bold))
