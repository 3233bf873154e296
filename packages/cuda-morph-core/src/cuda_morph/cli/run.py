"""``cuda-morph run``: the options before the program are ours, all others are the program's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from cuda_morph import environment
from cuda_morph.launcher.program import Program

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_FLAGS: dict[str, Literal["module", "code"]] = {"-m": "module", "-c": "code"}


class RunCommand(click.Command):
    """Splits the command line as python does: at the first script, ``-m`` or ``-c``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keeps the program and its arguments away from click."""
        taking_value = {
            name
            for parameter in self.params
            if isinstance(parameter, click.Option) and not parameter.is_flag
            for name in parameter.opts
        }
        head, program = split_arguments(args, taking_value)
        super().parse_args(ctx, head)
        if program is None and not ctx.resilient_parsing:
            raise click.UsageError("Name a script, or use -m MODULE or -c CODE.", ctx)
        ctx.params["program"] = program
        return []


def split_arguments(
    arguments: Sequence[str], taking_value: set[str]
) -> tuple[list[str], Program | None]:
    """Splits a command line into our options and the program.

    Args:
        arguments: Everything after ``run``.
        taking_value: Our options whose value is the next argument.

    Returns:
        Our options, and the program with its arguments if one is named.
    """
    position = 0
    while position < len(arguments):
        argument = arguments[position]
        rest = tuple(arguments[position + 1 :])
        head = list(arguments[:position])
        if argument == "--":
            return head, _script(rest[0], rest[1:]) if rest else None
        if argument[:2] in _FLAGS:
            values = (argument[2:], *rest) if argument[2:] else rest
            if not values or not values[0]:
                raise click.UsageError(f"Option {argument!r} requires an argument.")
            kind = _FLAGS[argument[:2]]
            return head, Program(kind=kind, target=values[0], arguments=values[1:])
        if not argument:
            raise click.UsageError("Name a script, or use -m MODULE or -c CODE.")
        if argument == "-" or not argument.startswith("-"):
            return head, _script(argument, rest)
        position += 2 if argument in taking_value else 1
    return list(arguments), None


def _script(target: str, arguments: tuple[str, ...]) -> Program:
    kind: Literal["script", "stdin"] = "stdin" if target == "-" else "script"
    return Program(kind=kind, target=target, arguments=arguments)


@click.command(
    cls=RunCommand,
    options_metavar="[OPTIONS]",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option("--backend", metavar="NAME", help="Plugin to use; see cuda-morph plugins.")
@click.option(
    "--view",
    type=click.Choice(environment.VIEW.choices),
    help="What the program sees: a CUDA machine (the default) or the vendor's own names.",
)
@click.option(
    "--fallback",
    type=click.Choice(environment.FALLBACK.choices),
    help="Without an accelerator: run on the CPU (the default) or stop.",
)
@click.option(
    "--tier", type=click.Choice(environment.TIER.choices), help="Force one interception tier."
)
@click.option(
    "--report",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write what was redirected to FILE, as JSON, when the program ends.",
)
@click.option(
    "--trace",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Record calls, operators, times and call sites; write FILE.html or FILE.json. Slow.",
)
@click.option("--quiet", is_flag=True, help="Write neither the opening line nor the closing table.")
def run(
    program: Program, report: Path | None, trace: Path | None, quiet: bool, **options: Any
) -> Callable[..., None]:
    """Run an unchanged CUDA program on another accelerator.

    \b
    cuda-morph run [OPTIONS] SCRIPT [ARGUMENTS]...
    cuda-morph run [OPTIONS] -m MODULE [ARGUMENTS]...
    cuda-morph run [OPTIONS] -c CODE [ARGUMENTS]...
    cuda-morph run [OPTIONS] - [ARGUMENTS]...        (program on standard input)

    Options come before the program; everything after it belongs to the program.

    Exit codes: those of the program; 2 when it could not be started.

    \b
    Examples:
      cuda-morph run train.py --epochs 3
      cuda-morph run --backend sim --view native train.py
      cuda-morph run --backend sim --trace trace.html -m mypackage.train
    """  # noqa: D301 - the backslash is click's mark for lines that must not be joined
    from cuda_morph.launcher.session import Options, Session

    return Session(Options(report=report, trace=trace, quiet=quiet, **options), program).run
