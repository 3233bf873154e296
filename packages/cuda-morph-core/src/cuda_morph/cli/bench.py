"""``cuda-morph bench``: the shim's overhead, operators, models; measured here and now."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cuda_morph.cli import output

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_morph.benchmarks.report import BenchReport

_MOST = 100_000


def _file(name: str) -> Callable[..., Any]:
    return click.option(
        f"--{name}",
        f"{name}_file",
        metavar="FILE",
        type=click.Path(path_type=Path),
        help=f"Write {name.upper()} to FILE too.",
    )


def _output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (_file("html"), _file("json"), _file("csv"), output.format_option):
        command = option(command)
    return command


_device = click.option("--device", metavar="DEV", help="Device to measure, such as cuda:0 or cpu.")
_backend = click.option("--backend", metavar="NAME", help="Backend to activate.")


@click.group()
def bench() -> None:
    r"""Measure the shim's overhead, operators, or a model.

    Every figure is measured when the command runs. Simulated devices are named so: their times
    are those of this machine's CPU.

    \b
    Examples:
      cuda-morph bench overhead --backend sim
      cuda-morph bench ops --backend sim --quick
      cuda-morph bench model --backend sim --steps 20
    """


@bench.command()
@_backend
@click.option(
    "--rounds",
    type=click.IntRange(4, _MOST),
    default=30,
    show_default=True,
    help="Alternations of native and active blocks.",
)
@_output_options
def overhead(backend: str | None, rounds: int, **files: Any) -> int:
    """Compare the active shim with native PyTorch, in alternating blocks of one run.

    \b
    Example:
      cuda-morph bench overhead --backend sim
    """  # noqa: D301 - the backslash is click's mark for lines that must not be joined
    from cuda_morph.benchmarks.overhead import measure_overhead

    outputs = _Outputs(**files)
    with output.progress("Measuring blocks") as advance:
        report = measure_overhead(backend, rounds=rounds, progress=advance)
    return outputs.write(report)


@bench.command()
@_device
@_backend
@click.option("--ops", metavar="REGEX", help="Only operators whose name matches.")
@click.option("--dtypes", metavar="LIST", help="Dtypes; default float32,float16,bfloat16.")
@click.option("--samples", type=click.IntRange(3, _MOST), default=30, show_default=True)
@click.option("--quick", is_flag=True, help="Only the smallest shape of each operator.")
@_output_options
def ops(
    device: str | None,
    backend: str | None,
    ops: str | None,
    dtypes: str | None,
    samples: int,
    quick: bool,
    **files: Any,
) -> int:
    """Measure the latency of common operators by shape and dtype.

    \b
    Examples:
      cuda-morph bench ops --backend sim --quick
      cuda-morph bench ops --device cuda --ops 'mm|attention' --dtypes float16 --html ops.html
    """  # noqa: D301 - the backslash is click's mark for lines that must not be joined
    from cuda_morph.benchmarks import operators
    from cuda_morph.chosen_device import opened, request_device
    from cuda_morph.verification import database

    outputs = _Outputs(**files)
    request = request_device(backend, device)
    names = operators.DTYPES if dtypes is None else database.parse_dtypes(dtypes, quick=quick)
    cases = operators.choose_cases(database.compile_pattern(ops))
    with opened(request) as chosen, output.progress("Measuring operators") as advance:
        report = operators.measure_operators(
            chosen, cases, names, samples=samples, quick=quick, progress=advance
        )
    return outputs.write(report)


@bench.command()
@click.argument("target", required=False, metavar="[MODEL.py:FACTORY]")
@_device
@_backend
@click.option("--input", "inputs", metavar="SHAPE[:DTYPE]", multiple=True, help="Random input.")
@click.option("--train", is_flag=True, help="Steps are forward, backward and an SGD update.")
@click.option("--warm-up", type=click.IntRange(0, _MOST), default=5, show_default=True)
@click.option("--steps", type=click.IntRange(3, _MOST), default=50, show_default=True)
@_output_options
def model(
    target: str | None,
    device: str | None,
    backend: str | None,
    inputs: tuple[str, ...],
    train: bool,
    warm_up: int,
    steps: int,
    **files: Any,
) -> int:
    """Measure samples/s, tokens/s and latency of a model, or of a small built-in transformer.

    FACTORY is as for "op audit": it returns the model, or (model, inputs).

    \b
    Examples:
      cuda-morph bench model --backend sim --steps 20
      cuda-morph bench model model.py:make_model --device cuda --input 8,3,224,224 --train
    """  # noqa: D301 - the backslash is click's mark for lines that must not be joined
    from cuda_morph import model_factory
    from cuda_morph.benchmarks import models
    from cuda_morph.chosen_device import opened, request_device

    outputs = _Outputs(**files)
    if target is not None:
        model_factory.split_target(target)
    request = request_device(backend, device)
    # What the model prints does not belong into the answer.
    with contextlib.redirect_stdout(sys.stderr), opened(request) as chosen:
        made = models.built_in_model if target is None else model_factory.load_factory(target)
        call = model_factory.build(made, inputs, chosen.device)
        report = models.measure_model(
            target or models.BUILT_IN, call, chosen, train=train, warm_up=warm_up, steps=steps
        )
    return outputs.write(report)


class _Outputs:
    """Where a report goes; files are checked before anything is measured."""

    def __init__(
        self,
        *,
        output_format: str,
        html_file: Path | None,
        json_file: Path | None,
        csv_file: Path | None,
    ) -> None:
        from cuda_morph.atomic_file import AtomicFile

        self._format = output_format
        given = {"csv": csv_file, "json": json_file, "html": html_file}
        named = {kind: path for kind, path in given.items() if path is not None}
        self._files = {kind: AtomicFile(path) for kind, path in named.items()}
        if len({file.path for file in self._files.values()}) < len(self._files):
            from cuda_morph.errors import SettingError

            raise SettingError(
                f"{' and '.join(f'--{kind}' for kind in self._files)} name one file.",
                hint="Give each a file of its own.",
            )

    def write(self, report: BenchReport) -> int:
        """Writes the report; returns the exit code."""
        if self._format == "json":
            output.write_json(report.as_dict())
        else:
            click.secho(f"{report.subject} on {report.device.label}", bold=True)
            output.write_table(report.columns(), report.table())
            click.echo()
            for note in report.all_notes():
                click.echo(f"note: {note}")
        texts = {
            "csv": report.csv_text,
            "json": lambda: json.dumps(report.as_dict(), indent=2) + "\n",
            "html": report.page,
        }
        for kind, file in self._files.items():
            file.write(texts[kind]())
        return int(not report.ok)
