"""The command group: commands are listed from a table and imported when they are run."""

from __future__ import annotations

import importlib

import click

COMMANDS = {
    "bench": ("cuda_morph.cli.bench:bench", "Measure overhead, operators or a model."),
    "check": ("cuda_morph.cli.check:check", "Find every CUDA dependence of a source tree."),
    "compile": ("cuda_morph.cli.compile:compile_", "Say which torch.compile backend fits."),
    "doctor": ("cuda_morph.cli.doctor:doctor", "Examine this installation, with fixes."),
    "error": ("cuda_morph.cli.error:error", "Explain a vendor's error code, or those of a log."),
    "explain": ("cuda_morph.cli.explain:explain", "Explain a CUDA name, rule, error or check."),
    "info": ("cuda_morph.cli.info:info", "Show versions, settings and what is active."),
    "new-plugin": ("cuda_morph.cli.new_plugin:new_plugin", "Write the package of a new plugin."),
    "op": ("cuda_morph.cli.op:op", "Tell a model's native operators from fallbacks."),
    "plugins": ("cuda_morph.cli.plugins:plugins", "Show every plugin and its state."),
    "port": ("cuda_morph.cli.port:port", "Rewrite CUDA code to device-generic PyTorch."),
    "quant": ("cuda_morph.cli.quant:quant", "Say which backends run a quantised model."),
    "run": ("cuda_morph.cli.run:run", "Run an unchanged CUDA program on another accelerator."),
    "scaffold": ("cuda_morph.cli.scaffold:scaffold", "Write the project of a custom operator."),
    "verify": ("cuda_morph.cli.verify:verify", "Compare a device's operators with the CPU."),
    "vllm": ("cuda_morph.cli.vllm:vllm", "Say whether vLLM is ready for an accelerator."),
}
"""Command name to where it lives and what the overview says about it."""

SECTIONS = {
    "Run a program": ("run", "info"),
    "Look at backends and answers": ("plugins", "doctor", "explain", "error"),
    "Move a project": ("check", "port"),
    "Try a device or a model": ("verify", "op", "bench", "compile", "quant", "vllm"),
    "Write a plugin or an operator": ("new-plugin", "scaffold"),
}
"""The overview's headings, in the order in which a newcomer needs them."""


class LazyGroup(click.Group):
    """A group whose overview imports no command."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Returns the names of all commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports one command."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        if ctx.resilient_parsing:  # the shell asks what may follow
            from cuda_morph.cli.completion import offer_names

            for one in (command, *getattr(command, "commands", {}).values()):
                offer_names(one)
        return _with_examples(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Writes the overview from the table."""
        width = max(len(name) for name in COMMANDS)
        for title, names in SECTIONS.items():
            rows = [(f"{name:<{width}}", COMMANDS[name][1]) for name in names]
            with formatter.section(title):
                formatter.write_dl(rows)


def _with_examples(command: click.Command) -> click.Command:
    """Keeps the lines of examples apart.

    Click leaves paragraphs alone that begin with the control character; in a raw docstring, which
    is how examples with backslashes are written, there are two characters in its place.
    """
    command.help = (command.help or "").replace("\\b\n", "\b\n")
    for inner in getattr(command, "commands", {}).values():
        _with_examples(inner)
    return command


def _show_version(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    from cuda_morph import get_version

    click.echo(f"cuda-morph {get_version()}")
    ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
def cli() -> None:
    r"""Run unchanged CUDA PyTorch code on any accelerator.

    \b
    Start here:
      cuda-morph plugins                     which accelerators are known here
      cuda-morph run train.py --epochs 3     run a program on the one found here
      cuda-morph run --backend sim train.py  the same on a simulated device
      cuda-morph check src --target NAME     what a project needs from a backend
      cuda-morph COMMAND --help              options and examples of a command

    Exit codes: 0 clean, 1 findings, 2 error; run keeps the exit code of its program.
    """


_with_examples(cli)
