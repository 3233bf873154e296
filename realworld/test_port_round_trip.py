"""Packages from PyPI pass their own tests after ``cuda-morph port`` as they did before."""

import json
import os
import re
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree

import pytest

tomllib = pytest.importorskip("tomllib")

HERE = Path(__file__).parent
PACKAGES = tomllib.loads((HERE / "packages.toml").read_text())
MODES = {"safe": [], "unsafe": ["--unsafe"]}

pytestmark = [pytest.mark.realworld, pytest.mark.timeout(1800)]


def python(*arguments, folder, **variables):
    """Runs Python in a folder whose packages come before the installed ones."""
    paths = [folder, HERE / "device", HERE / "witness", os.getenv("PYTHONPATH", "")]
    environment = {key: value for key, value in os.environ.items() if "CUDA_MORPH" not in key}
    environment |= {"PYTHONPATH": os.pathsep.join(map(str, filter(None, paths))), "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment | variables,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def outcomes(folder, package, *options, launcher=()):
    """Runs the package's own tests and returns what became of each."""
    report = folder / "outcomes.xml"
    quiet = ["-q", "-p", "no:cacheprovider", "-o", "addopts=", f"--junitxml={report}"]
    done = python(*launcher, "-m", "pytest", *quiet, *options, *package["tests"], folder=folder)
    assert report.exists(), done.stdout + done.stderr
    found = {}
    for case in ET.parse(report).getroot().iter("testcase"):  # noqa: S314 - pytest wrote it
        name = f"{case.get('classname')}::{case.get('name')}"
        kinds = {"failure", "error", "skipped"} & {part.tag for part in case}
        found[name] = min(kinds, default=found.get(name, "passed"))
    report.unlink()
    return found


def port(folder, *arguments):
    """Runs the command and returns its JSON document."""
    command = ["-m", "cuda_morph", "port", *arguments, "--format", "json"]
    done = python(*command, folder=folder)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def content(folder):
    """The bytes of every Python file."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.py")}


@dataclass
class Source:
    """An unpacked source distribution, and what its tests gave on the CPU."""

    package: dict
    folder: Path
    before: dict


@pytest.fixture(scope="module", params=PACKAGES)
def source(request, tmp_path_factory):
    package = PACKAGES[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "wanted.txt").write_text(package["requirement"])
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
    subprocess.run([*pip, "-r", "wanted.txt", "-d", "."], cwd=folder, check=True)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    (unpacked,) = (path for path in folder.iterdir() if path.is_dir())
    before = outcomes(unpacked, package)
    assert "passed" in before.values()
    name = package["folders"][0]
    where = python("-c", f"import {name}; print({name}.__file__)", folder=unpacked)
    assert where.stdout.startswith(str(unpacked)), "the installed package was tested"
    return Source(package, unpacked, before)


@pytest.fixture(scope="module")
def fails_on_cuda(source):
    """Tests that fail as the package stands where there is CUDA: under ``cuda-morph run``."""
    launcher = ["-m", "cuda_morph", "run", "--quiet", "--backend", "sim"]
    return failed(outcomes(source.folder, source.package, launcher=launcher))


@dataclass
class Ported:
    """A ported copy, and what port said about it."""

    source: Source
    folder: Path
    document: dict
    options: list


@pytest.fixture(scope="module", params=MODES)
def ported(request, source, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param) / "copy"
    copytree(source.folder, folder)
    options = [*source.package["folders"], *MODES[request.param]]
    return Ported(source, folder, port(folder, *options, "--write"), options)


def test_the_own_tests_give_the_same_on_the_cpu(ported, record_property):
    files = ported.document["files"]
    record_property("files", sum(item["changed"] for item in files))
    record_property("places", sum(item["rewritten"] for item in files))
    record_property("left", sum(len(item["left"]) for item in files))
    record_property("before", dict(Counter(ported.source.before.values())))
    assert sum(item["rewritten"] for item in files) >= 15
    assert not any(item["problem"] for item in files)
    after = outcomes(ported.folder, ported.source.package)
    assert differences(ported.source.before, after) == []


def test_the_own_tests_of_the_device_pass_on_the_simulated_one(
    ported, fails_on_cuda, record_property
):
    """Neither activated nor run by cuda-morph: a ported package finds any accelerator itself."""
    if "--unsafe" not in ported.options:
        pytest.skip("the safe changes alone may leave .cuda() to be ported by hand")
    package, before = ported.source.package, ported.source.before
    after = outcomes(ported.folder, package, "-p", "on_sim")
    after = {re.sub(r"\bsim\b", "cuda", name): outcome for name, outcome in after.items()}
    record_property("on_sim", dict(Counter(after.values())))
    # With a device there may be more tests than without: of each device, or of each kind of data.
    assert {name for name, outcome in before.items() if outcome == "passed"} <= after.keys()
    broken = failed(after) - failed(before) - fails_on_cuda
    record_property("fails_on_cuda", len(fails_on_cuda))
    reasons = package.get("left", {})
    left = {found["symbol"] for item in ported.document["files"] for found in item["left"]}
    assert sorted(name for name in broken if name.partition("::")[2] not in reasons) == []
    assert set(reasons.values()) <= left


def test_porting_again_changes_nothing(ported):
    before = content(ported.folder)
    again = port(ported.folder, *ported.options, "--write")
    assert not any(item["changed"] for item in again["files"])
    assert content(ported.folder) == before


def test_undo_gives_back_every_byte(ported, tmp_path):
    folder = tmp_path / "copy"
    copytree(ported.source.folder, folder)
    port(folder, *ported.options, "--write")
    assert content(folder) != content(ported.source.folder)
    assert python("-m", "cuda_morph", "port", "--undo", folder=folder).returncode == 0
    assert content(folder) == content(ported.source.folder)


def test_a_program_with_the_lines_of_activate_uses_the_device(source, tmp_path):
    program = source.package.get("program")
    if program is None:
        pytest.skip("the package has no program among its tests")
    folder = tmp_path / "copy"
    copytree(source.folder, folder)
    for lines, used in (([], False), (["--activate", "--write"], True)):
        if lines:
            port(folder, program, *lines)
        witness = tmp_path / f"{used}.jsonl"
        seen = {"CUDA_MORPH_BACKEND": "sim", "REALWORLD_WITNESS": str(witness)}
        done = python(program, folder=folder, **seen)
        peaks = [json.loads(line)["peaks"] for line in witness.read_text().splitlines()]
        assert any(map(any, peaks)) is used, done.stderr
        assert "Ran " in done.stderr
        assert done.returncode == 0, done.stderr
    again = port(folder, program, "--activate", "--write")
    assert not any(item["changed"] for item in again["files"])


def failed(found):
    """The names of the tests that did not end well."""
    return {name for name, outcome in found.items() if outcome in ("failure", "error")}


def differences(before, after):
    """What is not the same, with both outcomes."""
    names = sorted(before.keys() | after.keys())
    pairs = [(name, before.get(name), after.get(name)) for name in names]
    return [pair for pair in pairs if pair[1] != pair[2]]


def test_at_least_three_packages_are_ported():
    assert len(PACKAGES) >= 3
