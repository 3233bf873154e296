"""What users install: the wheels and sdists that ``hatch build --all`` makes, in fresh environments.

``DIST_DIR`` names a folder of distributions to test; without it they are built here, from a copy.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import parse_wheel_filename

ROOT = Path(__file__).parents[1]
VENDORS = ("ascend", "biren", "cambricon", "enflame", "metax", "musa", "rocm", "xpu")
NAMES = {
    "cuda-morph",
    "cuda-morph-core",
    "cuda-morph-native",
    "cuda-morph-sim",
    "cuda-morph-conformance",
    *(f"cuda-morph-{vendor}" for vendor in VENDORS),
}
ALWAYS = {"cuda-morph", "cuda-morph-core", "cuda-morph-native"}
PACKAGED = sorted(NAMES - {"cuda-morph"})


def run(*command, cwd=None, **variables):
    """Runs a command to its end and returns its standard output; a failure shows everything."""
    keep = {key: value for key, value in os.environ.items() if not key.startswith("CUDA_MORPH_")}
    keep.pop("PYTHONPATH", None)
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=keep | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def pip(python, *arguments, **variables):
    return run(python, "-m", "pip", "--disable-pip-version-check", *arguments, **variables)


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """The folder of built distributions."""
    given = os.environ.get("DIST_DIR")
    if given:
        return Path(given)
    copy = tmp_path_factory.mktemp("source")
    listing = run("git", "ls-files", "-z", "-co", "--exclude-standard", cwd=ROOT)
    for name in filter(None, listing.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    run(sys.executable, "-m", "hatch", "build", "--all", cwd=copy)
    return copy / "dist"


@pytest.fixture(scope="module")
def wheels(dist):
    """The wheel of each distribution."""
    found = {parse_wheel_filename(path.name)[0]: path for path in dist.glob("*.whl")}
    assert set(found) == NAMES
    return found


@pytest.fixture(scope="module")
def house(wheels, dist, tmp_path_factory):
    """Our distributions and all they need, so that no index can offer another one by our names."""
    folder = tmp_path_factory.mktemp("house")
    needed = ["setuptools>=77", *wheels.values()]
    pip(sys.executable, "download", "--quiet", "--dest", folder, *needed)
    for sdist in dist.glob("*.tar.gz"):
        shutil.copy2(sdist, folder)
    return folder


def make_environment(folder):
    """Creates an environment that sees PyTorch, and nothing else, of the one that runs the tests."""
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin" / "python"
    site = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    borrowed = folder / "borrowed"
    borrowed.mkdir()
    for name in with_requirements("torch"):
        found = distribution(name)
        for top in {file.parts[0] for file in found.files or () if file.parts[0] != ".."}:
            if not (borrowed / top).exists():
                (borrowed / top).symlink_to(found.locate_file(top))
    Path(site, "borrowed.pth").write_text(f"{borrowed}\n")
    return python


def with_requirements(name, seen=None):
    """Returns a distribution's name and those of all that it needs here."""
    seen = set() if seen is None else seen
    if name not in seen:
        seen.add(name)
        for requirement in map(Requirement, distribution(name).requires or []):
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                with_requirements(requirement.name, seen)
    return seen


@pytest.fixture(scope="module")
def installed(house, tmp_path_factory):
    """The Python of an environment with everything installed from wheels."""
    python = make_environment(tmp_path_factory.mktemp("installed"))
    pip(python, "install", "--quiet", "--no-index", "--find-links", house, "cuda-morph[all]")
    return python


def test_there_is_an_sdist_for_each_wheel(dist, wheels):
    made = {path.name.rpartition("-")[0].replace("_", "-") for path in dist.glob("*.tar.gz")}
    assert made == set(wheels)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_the_wheel_carries_its_licence(name, wheels):
    assert any(path.endswith("licenses/LICENSE") for path in contents(wheels[name]))


@pytest.mark.parametrize("name", PACKAGED)
def test_the_wheel_is_typed_and_holds_one_package(name, wheels):
    package = name.replace("-", "_").removesuffix("_core")
    files = contents(wheels[name])
    assert f"{package}/py.typed" in files
    tops = {path.partition("/")[0] for path in files}
    assert {top for top in tops if not top.endswith(".dist-info")} == {package}


def test_the_meta_wheel_holds_metadata_only(wheels):
    assert all(".dist-info/" in path for path in contents(wheels["cuda-morph"]))


def test_the_native_wheel_holds_the_extension_and_no_sources(wheels):
    files = contents(wheels["cuda-morph-native"])
    assert any("/_native." in path and path.endswith((".so", ".pyd")) for path in files)
    assert not [path for path in files if path.endswith((".c", ".h"))]


def test_the_sim_wheel_holds_the_sources_of_its_device(wheels):
    files = contents(wheels["cuda-morph-sim"])
    assert [path for path in files if path.startswith("cuda_morph_sim/csrc/")]
    assert not [path for path in files if path.endswith(".so")]


@pytest.mark.parametrize("name", sorted(NAMES))
def test_the_sdist_gives_the_same_wheel(name, dist, wheels, tmp_path):
    [sdist] = dist.glob(f"{name.replace('-', '_')}-[0-9]*.tar.gz")
    options = ["--no-deps", "--no-build-isolation", "--no-cache-dir", "--no-index"]
    pip(sys.executable, "wheel", "--quiet", *options, "--wheel-dir", tmp_path, sdist)
    [again] = tmp_path.glob("*.whl")
    assert again.name == wheels[name].name
    assert contents(again) == contents(wheels[name])


def contents(wheel):
    """Returns the files of a wheel with their bytes, less those that name hashes or compilers."""
    with zipfile.ZipFile(wheel) as archive:
        return {
            name: b"" if name.endswith((".so", ".pyd", "/RECORD", "/WHEEL")) else archive.read(name)
            for name in archive.namelist()
            if not name.endswith("/")
        }


@pytest.mark.parametrize(
    ("extras", "expected"),
    [
        ("", ALWAYS),
        ("[cli]", ALWAYS),
        ("[sim]", ALWAYS | {"cuda-morph-sim"}),
        ("[conformance]", ALWAYS | {"cuda-morph-conformance"}),
        ("[musa]", ALWAYS | {"cuda-morph-musa"}),
        ("[rocm,xpu]", ALWAYS | {"cuda-morph-rocm", "cuda-morph-xpu"}),
        ("[all]", NAMES),
    ],
)
def test_extras_bring_what_they_say(extras, expected, house, installed):
    resolve = ["install", "--dry-run", "--ignore-installed", "--no-index", "--find-links", house]
    report = json.loads(pip(installed, *resolve, "--quiet", "--report", "-", f"cuda-morph{extras}"))
    chosen = {item["metadata"]["name"].lower() for item in report["install"]}
    assert {name for name in chosen if name.startswith("cuda-morph")} == expected
    assert "torch" not in chosen


def test_versions_are_those_of_the_distributions(installed, wheels):
    for name, command in (("cuda-morph-core", "cuda-morph"), ("cuda-morph-conformance",) * 2):
        version = str(parse_wheel_filename(wheels[name].name)[1])
        assert version in run(installed.parent / command, "--version")


def test_plugins_are_found_by_their_entry_points(installed):
    code = "from cuda_morph.plugins import plugin_names; print(*plugin_names())"
    assert run(installed, "-c", code).split() == sorted(["cpu", "sim", *VENDORS])


def test_plugins_bring_their_data(installed):
    code = (
        "from cuda_morph.plugins import collect\n"
        "from collections import Counter\n"
        "found = Counter(name for name, _ in collect('cuda_morph_error_codes'))\n"
        "print(*sorted(name for name, count in found.items() if count >= 7))"
    )
    assert run(installed, "-c", code).split() == list(VENDORS)


def test_an_unchanged_program_runs_on_the_installed_wheels(installed, tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import torch\nprint(torch.ones(3, device='cuda').sum().item())\n")
    command = installed.parent / "cuda-morph"
    assert "3.0" in run(command, "run", "--backend", "cpu", program, cwd=tmp_path).split()


@pytest.mark.skipif(sys.platform != "linux", reason="the compiled tier is for Linux")
def test_the_compiled_tier_of_the_wheel_is_used(installed):
    code = "import cuda_morph; print(cuda_morph.activate('cpu').tier)"
    assert run(installed, "-c", code).split() == ["T0"]


def test_without_a_compiler_everything_installs_and_info_says_so(house, tmp_path):
    python = make_environment(tmp_path / "environment")
    source = ["--no-index", "--find-links", house, "--no-binary", "cuda-morph-native"]
    pip(python, "install", "--quiet", "--no-cache-dir", *source, "cuda-morph", CC="false")
    info = "import cuda_morph, json; print(json.dumps(cuda_morph.info().as_dict()))"
    assert "not built" in json.loads(run(python, "-c", info))["native"]
    code = "import cuda_morph; print(cuda_morph.activate('cpu').tier)"
    assert run(python, "-c", code).split()[0] in {"T1", "T3"}
