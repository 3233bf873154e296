"""A vendor's way, for real: a plugin outside the repository, wheels, a fresh environment, one command."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("packages/cuda-morph-core", "packages/cuda-morph-native", "packages/cuda-morph-sim")
MEMBERS = (*PACKAGES, "conformance")

PYPROJECT = """
[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"

[project]
name = "cuda-morph-mychip"
version = "3.1"
dependencies = ["cuda-morph-core>=0.10,<0.11"]

[project.entry-points."cuda_morph.plugins"]
mychip = "cuda_morph_mychip"

[tool.hatch.build.targets.wheel]
packages = ["cuda_morph_mychip"]
"""

PLUGIN = '''
"""MyChip computes on the CPU and says so."""

from cuda_morph.hookspecs import hookimpl
from cuda_morph.records import Backend, CapabilityClaim, Detection, DeviceMapping, Support


@hookimpl
def cuda_morph_backend():
    return Backend(name="mychip", display_name="MyChip", vendor="MyChip Inc.", device_type="cpu",
                   adapter_module=None, collective_backend="gloo")


@hookimpl
def cuda_morph_detect():
    return Detection(available=True, device_count=1)


@hookimpl
def cuda_morph_capabilities():
    yield CapabilityClaim(id="device.multiple", support=Support.NEVER)
    yield CapabilityClaim(id="device.count", support=Support.FULL)


@hookimpl
def cuda_morph_device_mapping():
    return DeviceMapping(target="cpu", runtime=start, compute_capability=(8, 0))


def start():
    from cuda_morph.device.cpu import CpuRuntime

    return CpuRuntime()
'''


def run(*command, cwd=None, codes=(0,)):
    keep = {k: v for k, v in os.environ.items() if not k.startswith(("CUDA_MORPH_", "PYTHON"))}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd, env=keep, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode in codes, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """Wheels of our packages, built from copies, and of a plugin that is not ours."""
    folder = tmp_path_factory.mktemp("wheels")
    sources = tmp_path_factory.mktemp("sources")
    ignore = shutil.ignore_patterns("__pycache__", "build", "*.so", "*.egg-info", "dist")
    for member in MEMBERS:
        shutil.copytree(ROOT / member, sources / member, ignore=ignore)
    plugin = sources / "mychip"
    (plugin / "cuda_morph_mychip").mkdir(parents=True)
    (plugin / "cuda_morph_mychip" / "__init__.py").write_text(PLUGIN)
    (plugin / "pyproject.toml").write_text(PYPROJECT)
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        folder,
    ]
    run(*build, *(sources / member for member in MEMBERS), plugin)
    return folder


@pytest.fixture(scope="module")
def python(wheels, tmp_path_factory):
    """The interpreter of a fresh environment in which the wheels are installed, after torch."""
    folder = tmp_path_factory.mktemp("environment") / "venv"
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "-q"]
    torch = f"torch=={version('torch').partition('+')[0]}"
    run(*pip, torch)
    run(*pip, torch, *wheels.glob("*.whl"))
    return python


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_plugin_from_elsewhere_is_certified_with_the_same_command(python, tmp_path):
    command = python.with_name("cuda-morph-conformance")
    out = tmp_path / "cert"
    text = run(
        command, "run", "--plugin", "mychip", "--certify", "--out", out, cwd=tmp_path, codes=(0, 1)
    )
    certificate = json.loads((out / "mychip" / "certificate.json").read_text())
    assert certificate["level"] in {"loads", "runs", "trains"}, text
    who = certificate["plugin"]
    assert (who["plugin"], who["dist"], who["version"]) == ("mychip", "cuda-morph-mychip", "3.1")
    assert certificate["suite"]["editable"] is False
    assert certificate["suite"]["modified"] == []
    assert certificate["suite"]["record_sha256"]
    assert certificate["evidence"] == "none"
    assert certificate["counts"]["passed"] > 100
    run(command, "verify", out / "mychip", cwd=tmp_path)
    package = next(python.parents[1].glob("lib/*/site-packages/cuda_morph_conformance"))
    with (package / "outcomes.py").open("a") as file:
        file.write("# changed\n")
    refused = run(
        command, "run", "--plugin", "mychip", "--certify", "--out", tmp_path / "no", codes=(2,)
    )
    assert refused == ""
    assert not (tmp_path / "no").exists()
