"""Certification: the whole checklist in a process that nobody configured.

`start` is called by the command line. It starts `main` in a new process with a clean environment,
without start-up modules, in an empty folder; what the caller's own process was made to load or
patch stays behind there.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cuda_morph.errors import MorphError, SettingError
from cuda_morph_conformance.certificate import make_certificate, write_certificate
from cuda_morph_conformance.examination import examine
from cuda_morph_conformance.integrity import describe_suite
from cuda_morph_conformance.processes import isolated_command, isolated_environment
from cuda_morph_conformance.report_text import render_report, render_table
from cuda_morph_conformance.runner import find_entry
from cuda_morph_conformance.torch_lane import run_lane
from cuda_morph_conformance.waivers import read_waivers

if TYPE_CHECKING:
    from cuda_morph_conformance.certificate import Certificate
    from cuda_morph_conformance.result import Report

REFUSED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is to be certified, and where the certificates go."""

    plugins: tuple[str, ...]
    out: str
    waivers: str | None = None
    torch_suite: bool = False


def start(request: Request) -> int:
    """Certify in a process of its own.

    Args:
        request: What to do.

    Returns:
        Its exit code: 0 nothing failed or is missing, 1 something did, 2 it was refused.
    """
    with tempfile.TemporaryDirectory(prefix="cuda-morph-certify-") as folder:
        work = Path(folder, "work")
        work.mkdir()
        command = isolated_command("cuda_morph_conformance.certify", json.dumps(asdict(request)))
        environment = isolated_environment(Path(folder))
        return subprocess.run(command, cwd=work, env=environment, check=False).returncode


def main(argument: str) -> None:
    """Certify.

    Args:
        argument: A `Request` as JSON.
    """
    request = Request(**json.loads(argument))
    try:
        clean = certify(request)
    except MorphError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(REFUSED)
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(0 if clean else 1)


def certify(request: Request) -> bool:
    """Go through the whole checklist, and write the certificates.

    Args:
        request: What to do.

    Returns:
        True when nothing failed and nothing is missing.

    Raises:
        SettingError: The suite is not what was installed, or a waiver is not in order.
        UnknownBackendError: A plugin is not installed.
    """
    modified = describe_suite()["modified"]
    if modified:
        raise SettingError(
            f"The installed suite was changed: {', '.join(modified)}.",
            hint="Install cuda-morph-conformance again: pip install --force-reinstall --no-deps.",
        )
    for name in request.plugins:
        find_entry(name)
    waivers = read_waivers(Path(request.waivers)) if request.waivers else ()
    reports = examine(request.plugins, waivers=waivers)
    for report in reports:
        name = report.facts.plugin
        files = write_certificate(_certificate(report, request), Path(request.out, name))
        written = "\n".join(f"wrote {file}" for file in files)
        print(f"{render_report(report)}\n{written}\n", flush=True)  # noqa: T201 - the command's output
    if len(reports) > 1:
        print(render_table(reports))  # noqa: T201 - likewise
    return all(report.clean for report in reports)


def _certificate(report: Report, request: Request) -> Certificate:
    lane = run_lane(report.facts.plugin) if request.torch_suite else None
    return make_certificate(report, torch_suite=lane)
