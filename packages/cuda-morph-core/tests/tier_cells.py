"""Runs the programs of ``tier_programs`` once per cell of the matrix, in fresh processes."""

from __future__ import annotations

import ast
import functools
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = Path(__file__).parent / "tier_programs"
SITES = [PROGRAMS / "native_libraries_site", PROGRAMS / "simulated_site"]
TIMEOUT = 280
_processes = ThreadPoolExecutor(2)


@dataclass(frozen=True)
class Cell:
    """One process: which programs, and what they are to run under."""

    tier: str
    view: str
    backend: str
    programs: tuple[str, ...]
    activate: bool = True

    def __str__(self) -> str:
        return f"{self.tier}-{self.view}-{self.backend}"

    @functools.cached_property
    def checks(self) -> tuple[str, ...]:
        """The checks that apply here, found without importing them: they import torch."""
        return tuple(
            f"{program}.{node.name}"
            for program in self.programs
            for node in _checks(program)
            if self._applies(node)
        )

    def _applies(self, node: ast.FunctionDef) -> bool:
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "only":
                chosen = {word.arg: ast.literal_eval(word.value) for word in decorator.keywords}
                simulator = self.backend.partition(":")[0]
                here = {"tiers": self.tier, "views": self.view, "backends": simulator}
                if any(here[name] not in values for name, values in chosen.items()):
                    return False
        return True

    def error(self, check: str) -> str:
        """Returns what is wrong with a check, empty if nothing is; the cell runs once."""
        errors, ending = _started(self).result()
        return errors.get(check, f"was not reached; the process ended so:\n{ending}")


@functools.cache
def _checks(program: str) -> list[ast.FunctionDef]:
    body = ast.parse((PROGRAMS / f"{program}.py").read_text()).body
    functions = [node for node in body if isinstance(node, ast.FunctionDef)]
    return [node for node in functions if node.name.startswith("check_")]


@functools.cache
def _started(cell: Cell) -> Future[tuple[dict[str, str], str]]:
    return _processes.submit(_run, cell)


def _run(cell: Cell) -> tuple[dict[str, str], str]:
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("CUDA_MORPH_") or name.startswith("CUDA_MORPH_SIM_CACHE")
    }
    paths = [*map(str, SITES), environment.get("PYTHONPATH", "")]
    environment |= {
        "CUDA_MORPH_TIER": cell.tier,
        "CUDA_MORPH_SIM_MEMORY": "1GiB",
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
    }
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.jsonl"
        order = {
            "tier": cell.tier,
            "view": cell.view,
            "backend": cell.backend,
            "programs": cell.programs,
            "checks": cell.checks,
            "activate": cell.activate,
            "report": str(report),
        }
        command = [sys.executable, str(PROGRAMS / "run_checks.py"), json.dumps(order)]
        try:
            done = subprocess.run(
                command,
                env=environment,
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
                check=False,
            )
            ending = f"exit code {done.returncode}\n{done.stderr[-4000:]}"
        except subprocess.TimeoutExpired as late:
            ending = f"killed after {TIMEOUT} s\n{(late.stderr or b'')[-4000:]}"
        lines = report.read_text().splitlines() if report.exists() else []
    return {row["check"]: row["error"] for row in map(json.loads, lines)}, ending


@functools.cache
def simulated() -> str:
    """Returns why there is no simulated device here, or an empty string."""
    from cuda_morph import plugins
    from cuda_morph.errors import UnknownBackendError

    try:
        row = plugins.get_plugin("sim", detect=True)
    except UnknownBackendError as error:
        return f"no simulated device: {error.message}"
    return "" if row.status.value == "ready" else f"no simulated device: {row.reason}"


def parameters(matrix: list[Cell]) -> list[Any]:
    """Returns one parameter set per cell and check."""
    return [
        pytest.param(cell, check, id=f"{cell}-{check.replace('.check_', '-')}")
        for cell in matrix
        for check in cell.checks
    ]


def starting_fixture() -> Any:
    """Returns a fixture that starts the processes of all cells asked for, two at a time."""

    @pytest.fixture(scope="module", autouse=True)
    def start_processes(request: pytest.FixtureRequest) -> None:
        for item in request.session.items:
            if item.path == request.path and not _missing(item.callspec.params["cell"]):
                _started(item.callspec.params["cell"])

    return start_processes


def judge(cell: Cell, check: str) -> None:
    """Fails the test with what the check reported in its own process."""
    if _missing(cell):
        pytest.skip(_missing(cell))
    error = cell.error(check)
    if error:
        pytest.fail(error, pytrace=False)


def _missing(cell: Cell) -> str:
    """Returns what this machine lacks for a cell, or an empty string."""
    if cell.tier == "T0" and not compiled():
        return "cuda-morph-native is not built for this interpreter"
    if cell.tier == "T1" and not sys.platform.startswith("linux"):
        return "tier T1 knows Linux only"
    return "" if cell.backend == "cpu" else simulated()


@functools.cache
def compiled() -> bool:
    """Returns whether the compiled tier can be loaded."""
    try:
        from cuda_morph_native import AVAILABLE
    except ImportError:
        return False
    return bool(AVAILABLE)
