"""``cuda-morph op``: about operators; ``op audit`` tells native from fallback in a model."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cuda_morph.cli import output

if TYPE_CHECKING:
    from cuda_morph.operator_audit import AuditReport


@click.group()
def op() -> None:
    r"""Look at the operators of a model.

    \b
    Examples:
      cuda-morph op audit model.py:make_model --backend sim --input 8,3,32,32
    """


@op.command()
@click.argument("target", metavar="MODEL.py:FACTORY")
@click.option("--device", metavar="DEV", help="Device to run on, such as cuda:0.")
@click.option("--backend", metavar="NAME", help="Backend to activate; its first device is meant.")
@click.option(
    "--input",
    "inputs",
    metavar="SHAPE[:DTYPE]",
    multiple=True,
    help="Random input, such as 2,3,32,32 or 4,16:int64; may be repeated.",
)
@click.option("--backward", is_flag=True, help="Also run the backward pass.")
@click.option("--html", metavar="FILE", type=click.Path(path_type=Path), help="Write a page too.")
@output.format_option
def audit(
    target: str,
    device: str | None,
    backend: str | None,
    inputs: tuple[str, ...],
    backward: bool,
    html: Path | None,
    output_format: str,
) -> int:
    """Run a model once and tell native operators from those that fall back to the CPU.

    FACTORY is a function without arguments that returns the model, or (model, inputs). It runs
    while the backend is active; model and inputs are moved to the device.

    Exit codes: 0 every operator is native, 1 some fall back or nothing ran, 2 error.

    \b
    Examples:
      cuda-morph op audit model.py:make_model --backend sim --input 8,3,32,32
      cuda-morph op audit model.py:with_inputs --backend ascend --backward --html audit.html
    """  # noqa: D301 - the backslash is click's mark for lines that must not be joined
    from cuda_morph.atomic_file import AtomicFile

    page = None if html is None else AtomicFile(html)
    report = _audit(target, device, backend, inputs, backward=backward)
    if output_format == "json":
        output.write_json(report.as_dict())
    else:
        _write(report)
    if page is not None:
        page.write(report.page())
    return int(not report.ok)


def _audit(
    target: str,
    device: str | None,
    backend: str | None,
    inputs: tuple[str, ...],
    *,
    backward: bool,
) -> AuditReport:
    from cuda_morph import model_factory
    from cuda_morph.chosen_device import opened, refuse_cpu, request_device
    from cuda_morph.operator_audit import audit as run_audit

    model_factory.split_target(target)
    request = request_device(backend, device)
    why = "On the CPU every kernel is the CPU's: there is nothing to tell apart."
    refuse_cpu(request.device_type, why)
    # What the model prints does not belong into the answer.
    with contextlib.redirect_stdout(sys.stderr), opened(request) as chosen:
        refuse_cpu(chosen.device.type, why)
        call = model_factory.build(model_factory.load_factory(target), inputs, chosen.device)
        return run_audit(target, call, chosen, backward=backward)


def _write(report: AuditReport) -> None:
    from cuda_morph.operator_audit import COLUMNS

    click.secho(f"{report.target} on {report.device.label}", bold=True)
    if report.rows:
        output.write_table(COLUMNS, [row.texts() for row in report.rows])
        click.echo()
    click.echo(report.summary())
    for note in report.notes():
        click.echo(f"note: {note}")
