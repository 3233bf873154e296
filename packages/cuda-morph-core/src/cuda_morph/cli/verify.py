"""``cuda-morph verify``: operators of a device against a float64 reference."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cuda_morph.cli import output

if TYPE_CHECKING:
    from cuda_morph.chosen_device import DeviceRequest
    from cuda_morph.verification.report import VerifyReport

_SAMPLES = 3


@click.command()
@click.option("--device", metavar="DEV", help="Device to verify, such as cuda:0.")
@click.option("--backend", metavar="NAME", help="Backend to activate; its first device is meant.")
@click.option("--ops", metavar="REGEX", help="Only operators whose name matches.")
@click.option("--dtypes", metavar="LIST", help="Dtypes, such as float32,bfloat16.")
@click.option("--quick", is_flag=True, help="One sample each, two dtypes, a part of the operators.")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.IntRange(1, 86_400),
    default=300,
    show_default=True,
    help="Give an operator up after this time.",
)
@click.option("--html", metavar="FILE", type=click.Path(path_type=Path), help="Write a page too.")
@output.format_option
def verify(
    device: str | None,
    backend: str | None,
    ops: str | None,
    dtypes: str | None,
    quick: bool,
    timeout: int,
    html: Path | None,
    output_format: str,
) -> int:
    """Compare the operators of a device with the CPU in 64 bits, forward and gradient.

    Operators and samples are those of PyTorch's own operator database, seeds are fixed. An
    operator that the device does not have is unsupported, never a pass; one that runs, as far as
    can be known, through the backend's CPU fallback is shown so. Operators run in a process of
    their own: one that crashes or hangs it is a row like any other, and the rest goes on. The CPU
    is not compared with itself.

    Exit codes: 0 everything that is supported agrees, 1 something fails, crashes or hangs, or
    nothing passes, 2 error.

    \b
    Examples:
      cuda-morph verify --backend sim --quick
      cuda-morph verify --device cuda --ops '^(mm|softmax)$' --dtypes float16
      cuda-morph verify --backend ascend --html report.html
    """  # noqa: D301 - the backslash is click's mark for lines that must not be joined
    from cuda_morph.atomic_file import AtomicFile
    from cuda_morph.chosen_device import request_device

    page = None if html is None else AtomicFile(html)
    request = request_device(backend, device)
    report = _verify(request, ops, dtypes, quick=quick, seconds=timeout)
    if output_format == "json":
        output.write_json(report.as_dict())
    else:
        _write(report)
    if page is not None:
        page.write(report.page())
    return int(not report.ok)


def _verify(
    request: DeviceRequest,
    ops: str | None,
    dtypes: str | None,
    *,
    quick: bool,
    seconds: float,
) -> VerifyReport:
    from cuda_morph.verification import database, isolation

    database.compile_pattern(ops)
    order = isolation.Order(
        request=request,
        ops=ops,
        dtypes=database.parse_dtypes(dtypes, quick=quick),
        quick=quick,
        samples=1 if quick else _SAMPLES,
        seconds=seconds,
    )
    with output.progress("Comparing operators") as advance:
        return isolation.verify(order, advance)


def _write(report: VerifyReport) -> None:
    from cuda_morph.verification.outcomes import PASS
    from cuda_morph.verification.report import COLUMNS, row

    click.secho(report.device.label, bold=True)
    shown = [row(result) for result in report.ordered()]
    output.write_table(COLUMNS, shown)
    click.echo()
    click.echo(report.summary())
    kernels = report.kernels()
    if kernels:
        said = ", ".join(f"{count} {kind}" for kind, count in sorted(kernels.items()))
        click.echo(f"Kernels of operators that pass: {said}.")
    if not report.cases()[PASS]:
        click.echo("Nothing passed, so nothing is verified.")
    for note in report.notes():
        click.echo(f"note: {note}")
