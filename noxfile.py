"""Every task of the repository. ``nox -l`` lists them, ``nox -s tests`` runs one.

PyTorch is installed first and pinned again in every later install, so that nothing replaces it.
On Linux the plain PyPI build brings CUDA libraries along; for the small CPU build set

    NOX_TORCH_INDEX=https://download.pytorch.org/whl/cpu

and for another version ``NOX_TORCH=torch==2.12.0``.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "virtualenv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["lint", "types", "tests"]

ROOT = Path(__file__).parent
TORCH = os.environ.get("NOX_TORCH", "torch==2.13.0")
TORCH_INDEX = os.environ.get("NOX_TORCH_INDEX")
GROUPS = nox.project.load_toml(ROOT / "pyproject.toml")["dependency-groups"]
PACKAGES = sorted(path.parent for path in (ROOT / "packages").glob("*/pyproject.toml"))
MEMBERS = [*PACKAGES, ROOT / "conformance"]
META = ROOT / "packages" / "cuda-morph"


def install_torch(session: nox.Session) -> None:
    """Install PyTorch alone, before anything that could ask for another build of it."""
    index = ["--index-url", TORCH_INDEX] if TORCH_INDEX else []
    session.install(TORCH, *index)


def install_members(session: nox.Session, *groups: str) -> None:
    """Install all packages of the repository as editable, with the named dependency groups."""
    install_torch(session)
    session.install(*GROUPS["backends"])
    editable = [part for member in MEMBERS for part in ("-e", str(member))]
    needed = [requirement for group in groups for requirement in GROUPS[group]]
    session.install("--no-build-isolation", TORCH, *editable, *needed)


# Whole files go to one worker: tests of one file may share a started process or activation.
SPREAD = ["-n", "2", "--dist", "loadfile"]


@nox.session
def tests(session: nox.Session) -> None:
    """The tests of all packages, of the suite and of the repository. Arguments go to pytest."""
    install_members(session, "tests")
    chosen = "not realworld and not long and not wrong_plugins"
    session.run("python", "-m", "pytest", *SPREAD, "-m", chosen, *session.posargs)


@nox.session(name="long")
def long_tests(session: nox.Session) -> None:
    """The tests that take minutes each: whole grids, whole certifications, whole builds."""
    install_members(session, "tests")
    session.run("python", "-m", "pytest", *SPREAD, "-m", "long", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Style: ruff's rules and its formatter."""
    session.install(*GROUPS["lint"])
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Types: mypy, strict, without PyTorch installed."""
    session.install(*GROUPS["types"])
    session.run("mypy")


@nox.session
def demo(session: nox.Session) -> None:
    """A CUDA program that dies here as it stands, then runs unchanged under cuda-morph."""
    install_torch(session)
    siblings = [str(member) for member in PACKAGES if member != META]
    session.install(TORCH, *siblings, f"{META}[sim]", *GROUPS["demo"])

    training = "examples/train_char_gpt.py"
    show("1. A training program written for CUDA, as it stands", f"python {training}")
    output = session.run("python", training, success_codes=[0, 1], silent=True)
    print((output or "").strip().splitlines()[-1])

    on_sim = ["cuda-morph", "run", "--backend", "sim"]
    show("2. The same file on a simulated accelerator", f"{' '.join(on_sim)} {training}")
    Path("out").mkdir(exist_ok=True)
    session.run(*on_sim, "--report", "out/demo.json", training, *session.posargs)

    inference = "examples/inference_transformers.py"
    show("3. Text generation with transformers", f"{' '.join(on_sim)} {inference}")
    session.run(*on_sim, inference)
    session.run("python", "examples/check_same_tokens.py", "--backend", "sim")


def show(heading: str, command: str) -> None:
    """Print the heading of one part of the demo and the command that a user would type."""
    print(f"\n\033[1m{heading}\033[0m\n$ {command}\n", flush=True)


@nox.session
def tour(session: nox.Session) -> None:
    """Train the same CUDA script on every simulated vendor's device and compare the losses."""
    install_members(session, "demo")
    session.run("python", "examples/tour.py", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Measure the overhead budget; writes out/bench.json."""
    install_members(session, "bench")
    Path("out").mkdir(exist_ok=True)
    session.run("python", "bench/run.py", "--json", "out/bench.json", *session.posargs)


@nox.session
def build(session: nox.Session) -> None:
    """Build wheels and sdists of all packages into dist/, then install and test exactly those."""
    install_torch(session)
    session.install(TORCH, *GROUPS["build"], *GROUPS["backends"])
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    session.run("hatch", "build", "--all")
    session.run(
        "python", "-m", "pytest", "tests/test_built_distributions.py", *session.posargs,
        env={"DIST_DIR": str(ROOT / "dist")},
    )  # fmt: skip


@nox.session
def conformance(session: nox.Session) -> None:
    """Certify every plugin of the repository, or those named with --plugin; writes out/certify/."""
    install_members(session, "conformance")
    plugins = session.posargs or ["--all"]
    out = ["--certify", "--out", "out/certify"]
    # A plugin that falls short is a finding of the run, shown in its table, and no failed run.
    session.run("cuda-morph-conformance", "run", *plugins, *out, success_codes=[0, 1])


@nox.session(name="wrong-plugins")
def wrong_plugins(session: nox.Session) -> None:
    """Run the whole checklist on each wrong plugin; writes docs/kill-rate.md."""
    install_members(session, "tests")
    Path("out").mkdir(exist_ok=True)
    program = "conformance/tests/wrong_plugins/kill_rate.py"
    page = ["--page", "docs/kill-rate.md"]
    session.run("python", program, "out/kill-rate.json", *page, *session.posargs)


@nox.session
def realworld(session: nox.Session) -> None:
    """Run real programs and libraries, unchanged, on the simulated device."""
    install_members(session, "tests", "realworld")
    session.install("--no-deps", *GROUPS["realworld-alone"])
    session.run("python", "-m", "pytest", "-m", "realworld", "realworld", *session.posargs)


@nox.session(name="sim-opinfo")
def sim_opinfo(session: nox.Session) -> None:
    """Compare every operator of PyTorch's operator database on the simulated device with CPU."""
    install_members(session, "opinfo")
    session.run("python", "-m", "cuda_morph_sim.opinfo", *session.posargs)


@nox.session(name="cuda-build")
def cuda_build(session: nox.Session) -> None:
    """Optional: the simulated device and the CPU under a CUDA build. Downloads about 3 GB."""
    torch = os.environ.get("NOX_CUDA_TORCH", "torch==2.14.1")
    session.warn(f"{torch} from PyPI brings CUDA's libraries along: about 5.5 GB when installed.")
    session.install(torch)
    session.install(*GROUPS["backends"])
    editable = [part for member in MEMBERS for part in ("-e", str(member))]
    session.install("--no-build-isolation", torch, *editable, *GROUPS["tests"])
    files = ("test_tiers.py", "test_surface_spellings.py", "test_compile.py")
    tests = [f"packages/cuda-morph-core/tests/{name}" for name in files]
    chosen = "not T1 and not T3"  # they pass too, in twice the time
    session.run("python", "-m", "pytest", *tests, "-k", chosen, *session.posargs)
