"""``cuda-morph doctor``: findings and fixes, also where plugins hang, abort or lie."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tomllib
from click.testing import CliRunner
from fake_distributions import source
from packaging.requirements import Requirement

from cuda_morph.cli.group import cli
from cuda_morph.diagnosis import contained, entry_points, libraries, settings, startup, surroundings
from cuda_morph.diagnosis.doctor import examine
from cuda_morph.records import Backend

CHECKS = """
@hookimpl
def cuda_morph_health_checks():
    import os, sys, time
    def result(ok, text):
        return lambda: CheckResult(ok=ok, message=text)
    def noisy():
        print("a line on standard output")
        os.write(1, b"and one below Python")
        return CheckResult(ok=True, message="noisy")
    def fails():
        try:
            open("/no/such/lib")
        except OSError as error:
            raise RuntimeError("driver") from error
    yield HealthCheck(id="mychip.good", summary="s", run=result(True, "fine"), fix="never shown")
    yield HealthCheck(id="mychip.bad", summary="s", run=result(False, "no driver"), fix="get it")
    yield HealthCheck(id="mychip.raises", summary="s", run=fails)
    yield HealthCheck(id="mychip.exits", summary="s", run=lambda: sys.exit(3))
    yield HealthCheck(id="mychip.dies", summary="s", run=lambda: os._exit(0))
    yield HealthCheck(id="mychip.aborts", summary="s", run=os.abort)
    yield HealthCheck(id="mychip.hangs", summary="s", run=lambda: time.sleep(600))
    yield HealthCheck(id="mychip.lies", summary="s", run=lambda: "yes")
    yield HealthCheck(id="mychip.noisy", summary="s", run=noisy)
    yield HealthCheck(id="mychip.last", summary="s", run=result(None, "cannot tell"))

@hookimpl
def cuda_morph_version_matrix():
    yield VersionRow(adapter="1.5", torch="1.0", sdk="SDK 7", source="release notes")
"""


def levels(diagnosis):
    return {finding.id: finding.level.value for finding in diagnosis.findings}


def finding(diagnosis, id_):
    (found,) = [one for one in diagnosis.findings if one.id == id_]
    return found


def install(site, name, version="1.0", entry_points=""):
    folder = site.root / f"{name}-{version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (folder / "entry_points.txt").write_text(entry_points)
    site.changed()


def test_each_check_is_contained_and_the_others_still_run(fake_site):
    fake_site.add("mychip", source("mychip", extra=CHECKS))
    diagnosis = examine(plugin="mychip", seconds=6)
    found = {id_: level for id_, level in levels(diagnosis).items() if id_.startswith("mychip.")}
    assert found == {
        "mychip.good": "ok",
        "mychip.bad": "fail",
        "mychip.raises": "unknown",
        "mychip.exits": "unknown",
        "mychip.dies": "unknown",
        "mychip.aborts": "unknown",
        "mychip.hangs": "unknown",
        "mychip.lies": "unknown",
        "mychip.noisy": "ok",
        "mychip.last": "unknown",
    }
    assert diagnosis.failed
    assert finding(diagnosis, "mychip.good").fix == ""
    assert finding(diagnosis, "mychip.bad").fix == "get it"
    raised = finding(diagnosis, "mychip.raises").message
    assert "driver" in raised
    assert "/no/such/lib" in raised
    assert "signal 6" in finding(diagnosis, "mychip.aborts").message
    assert "within 6 s" in finding(diagnosis, "mychip.hangs").message


def test_a_plugin_whose_detection_aborts_is_a_finding(fake_site):
    code = source("mychip").replace("return Detection", "import os; os.abort(); return Detection")
    fake_site.add("mychip", code)
    diagnosis = examine(plugin="mychip", seconds=20)
    assert levels(diagnosis)["plugin.mychip"] == "fail"
    assert "signal 6" in finding(diagnosis, "plugin.mychip").message


ABSENT = (
    "available=False, reason='mychip_adapter is not installed.', "
    "details={'problem': 'adapter_missing', 'advice': 'Install it.'}"
)


def test_an_absent_accelerator_fails_only_when_it_is_wanted(fake_site, monkeypatch):
    fake_site.only_fakes()
    fake_site.add("mychip", source("mychip", detection=ABSENT, extra=CHECKS))
    assert levels(examine(seconds=20))["plugin.mychip"] == "unknown"
    monkeypatch.setenv("CUDA_MORPH_BACKEND", "mychip")
    diagnosis = examine(seconds=5)
    assert levels(diagnosis)["plugin.mychip"] == "fail"
    assert finding(diagnosis, "plugin.mychip").fix == "Install it."
    assert levels(diagnosis)["mychip.bad"] == "fail"


def test_broken_plugin(fake_site):
    fake_site.add("mychip", "import no_such_module_anywhere")
    code = CliRunner().invoke(cli, ["doctor", "--plugin", "mychip"], standalone_mode=False)
    assert code.return_value == 1
    assert "no_such_module_anywhere" in code.output
    assert "CUDA_MORPH_BLOCK=mychip" in code.output


@pytest.mark.parametrize(("torch", "level"), [("1.0.1+cpu", "ok"), ("1.1", "fail"), ("10", "fail")])
def test_version_matrix(fake_site, monkeypatch, torch, level):
    from cuda_morph.diagnosis import accelerators

    monkeypatch.setattr(accelerators, "torch_version", lambda: torch)
    code = source("mychip", extra=CHECKS).replace("adapter_module=None", "adapter_module='myad'")
    fake_site.add("mychip", code)
    install(fake_site, "myad", "1.5")
    (found,) = accelerators.compare_versions([fake_site.row("mychip")])
    assert found.level.value == level
    assert found.source == "release notes"
    assert ("SDK 7" in found.message) == (level == "ok")


def test_version_that_the_matrix_does_not_know(fake_site):
    from cuda_morph.diagnosis import accelerators

    code = source("mychip", extra=CHECKS).replace("adapter_module=None", "adapter_module='myad'")
    fake_site.add("mychip", code)
    install(fake_site, "myad", "9.9")
    (found,) = accelerators.compare_versions([fake_site.row("mychip")])
    assert found.level.value == "unknown"


BACKEND = Backend(
    name="mychip",
    display_name="My chip",
    vendor="Test",
    device_type="fake",
    adapter_module=None,
    visible_devices_env="MYCHIP_VISIBLE_DEVICES",
)


@pytest.mark.parametrize(
    ("variables", "level"),
    [
        ({"CUDA_MORPH_VIEW": "sideways"}, "fail"),
        ({"CUDA_MORPH_STRICT": "perhaps"}, "fail"),
        ({"CUDA_MORPH_BACKEND": "nochip"}, "fail"),
        ({"CUDA_MORPH_BACKEND": "mychip:nochip"}, "fail"),
        ({"CUDA_MORPH_BAKEND": "mychip"}, "warn"),
        ({"CUDA_MORPH_NO_PATCH": "1"}, "warn"),
        ({"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}, "warn"),
        ({"CXX": ""}, "warn"),
        ({"CXX": "no-such-compiler -O2"}, "warn"),
        ({"CXX": f"{sys.executable} -O2"}, "ok"),
        ({"CUDA_VISIBLE_DEVICES": "0,0"}, "warn"),
        ({"CUDA_VISIBLE_DEVICES": "all"}, "warn"),
        ({"CUDA_VISIBLE_DEVICES": "0", "MYCHIP_VISIBLE_DEVICES": "1"}, "warn"),
        ({"CUDA_VISIBLE_DEVICES": "0", "MYCHIP_VISIBLE_DEVICES": "0"}, "ok"),
        ({"CUDA_VISIBLE_DEVICES": "0;1"}, "warn"),
        ({"CUDA_VISIBLE_DEVICES": "0x1"}, "warn"),
        ({"CUDA_VISIBLE_DEVICES": " 0 , 1 "}, "ok"),
        ({"CUDA_VISIBLE_DEVICES": "GPU-0a1b"}, "ok"),
        ({"CUDA_VISIBLE_DEVICES": ""}, "ok"),
        ({"CUDA_MORPH_BACKEND": "mychip", "CUDA_MORPH_VIEW": "CUDA"}, "ok"),
        ({}, "ok"),
    ],
)
def test_variables(monkeypatch, variables, level):
    for name in list(os.environ):
        if name.startswith(("CUDA_", "TORCH_DEVICE", "CXX")):
            monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    (found,) = settings.look([BACKEND], ["mychip"])
    assert found.level.value == level
    assert bool(found.fix) == (level != "ok")


def test_secrets_stay_out_of_the_block(monkeypatch, fake_site):
    fake_site.add("mychip", source("mychip", more="visible_devices_env='MYCHIP_VISIBLE'"))
    monkeypatch.setenv("TORCH_API_TOKEN", "hunter2")
    monkeypatch.setenv("MYCHIP_SECRET_KEY", "hunter3")
    monkeypatch.setenv("TORCH_PROXY", "http://me:hunter4@proxy:80/")
    monkeypatch.setenv("CUDA_STRANGE", "a\nfake line \x1b[31m")
    monkeypatch.setenv("MYCHIP_HOME", str(Path.home() / "sdk"))
    monkeypatch.setenv("UNRELATED", "hunter5")
    block = dict(surroundings.block([fake_site.row("mychip")], {}))
    assert "hunter" not in str(block)
    assert block["TORCH_API_TOKEN"] == "(left out)"
    assert block["TORCH_PROXY"].endswith("@proxy:80/")
    assert block["MYCHIP_HOME"] == "~/sdk"
    assert block["CUDA_STRANGE"].isprintable()
    assert "UNRELATED" not in block


def test_autoload_shows_the_hidden_cause(fake_site):
    module = fake_site.root / "bad_backend.py"
    module.write_text(
        "def start():\n    try:\n        1 / 0\n"
        "    except ZeroDivisionError:\n        raise RuntimeError('could not start')\n"
    )
    fake_site.modules.append("bad_backend")
    install(fake_site, "bad-dist", entry_points="[torch.backends]\nbad = bad_backend:start\n")
    install(fake_site, "gone-dist", entry_points="[torch.backends]\ngone = not_there_at_all:x\n")
    quick = {found.id: found for found in startup.look_at_autoload(full=False, seconds=60)}
    assert quick["autoload.bad"].level.value == "ok"
    assert quick["autoload.gone"].level.value == "fail"
    assert "gone-dist" in quick["autoload.gone"].fix
    full = {found.id: found for found in startup.look_at_autoload(full=True, seconds=60)}
    assert full["autoload.bad"].level.value == "fail"
    assert "could not start" in full["autoload.bad"].message
    assert "division by zero" in full["autoload.bad"].message
    assert full["autoload.gone"].level.value == "fail"
    assert full["autoload.cuda_morph"].level.value == "ok"


def test_a_list_of_entry_points_that_cannot_be_read(fake_site):
    install(fake_site, "bad-dist", entry_points="[some.group]\na line without a sign\n")
    install(fake_site, "good-dist", entry_points="[torch.backends]\ngood = json:loads\n")
    broken = subprocess.run(
        [sys.executable, "-c", "import torch"],
        env={**os.environ, "PYTHONPATH": str(fake_site.root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert broken.returncode != 0  # or there is nothing to tell
    folder = fake_site.root / "garbage-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_bytes(b"\xff\xfe\x00")
    folder = fake_site.root / "cuda_morph_x-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Name: cuda-morph-x\n")
    [found] = list(entry_points.look())
    assert (found.id, found.level.value) == ("metadata.bad-dist", "fail")
    assert "bad-dist" in found.fix
    quick = {one.id: one for one in startup.look_at_autoload(full=False, seconds=60)}
    assert quick["autoload.good"].level.value == "ok"
    done = CliRunner().invoke(cli, ["doctor", "--plugin", "cpu"], standalone_mode=False)
    assert done.return_value == 1
    assert "metadata.bad-dist" in done.output
    assert re.search(r"cuda-morph-x +of no version", done.output)


def test_two_distributions_that_load_under_one_name(fake_site):
    (fake_site.root / "bad_backend.py").write_text("def start():\n    raise OSError('no driver')\n")
    (fake_site.root / "good_backend.py").write_text("def start():\n    pass\n")
    fake_site.modules += ["bad_backend", "good_backend"]
    for name, module in (("bad-dist", "bad_backend"), ("good-dist", "good_backend")):
        install(fake_site, name, entry_points=f"[torch.backends]\nsame = {module}:start\n")
    [found] = [
        one for one in startup.look_at_autoload(full=True, seconds=60) if one.id == "autoload.same"
    ]
    assert found.level.value == "fail"
    assert "no driver" in found.message
    assert "bad-dist" in found.fix
    assert "good-dist" in found.fix


@pytest.mark.parametrize(
    ("version", "level"),
    [("2.5.1", "warn"), ("not.a.version", "warn"), (None, "ok")],
)
def test_metadata_of_another_pytorch_than_its_files(fake_site, version, level):
    if version:
        install(fake_site, "torch", version)
    [found] = [one for one in libraries.look() if one.id == "torch"]
    assert found.level.value == level
    if version:
        assert version in found.message
        assert surroundings.torch_build().version in found.message


def test_early_imports(tmp_path, monkeypatch):
    (found,) = startup.look_at_early_imports(["early_adapter"])
    assert found.level.value == "ok"
    (tmp_path / "early_adapter.py").write_text("")
    (tmp_path / "usercustomize.py").write_text("import early_adapter; print('hello')\n")
    (tmp_path / "sitecustomize.py").write_text("import early_adapter; print('hello')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (found,) = startup.look_at_early_imports(["early_adapter"])
    assert (found.id, found.level.value) == ("startup.early_adapter", "warn")


def test_known_good_versions_are_those_of_the_dependency_groups():
    groups = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    for row in libraries.known_good():
        texts = groups["dependency-groups"][row.source.removeprefix("dependency group ")]
        found = [Requirement(text) for text in texts]
        (wanted,) = [one for one in found if one.name == row.distribution]
        assert wanted.specifier == Requirement(f"{row.distribution}{row.versions}").specifier


@pytest.mark.parametrize(
    ("version", "level"), [("5.1", "ok"), ("4.57.6", "warn"), ("not a version", "unknown")]
)
def test_library_versions(monkeypatch, version, level):
    row = libraries.KnownGood(distribution="somelib", versions=">=5,<6", source="tests")
    monkeypatch.setattr(libraries, "known_good", lambda: (row,))
    monkeypatch.setattr(libraries.metadata, "version", lambda _: version)
    found = {one.id: one for one in libraries.look()}
    assert found["library.somelib"].level.value == level


def test_command_line():
    def doctor(*words):
        command = [sys.executable, "-m", "cuda_morph", "doctor", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    done = doctor("--plugin", "cpu", "--format", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads(done.stdout)
    assert answer["environment"]["plugin cpu"].startswith("ready")
    assert answer["counts"]["fail"] == 0
    assert set(answer) == {"environment", "findings", "counts"}
    assert sum(answer["counts"].values()) == len(answer["findings"])
    for one in answer["findings"]:
        assert set(one) == {"id", "level", "message", "fix", "source"}
        assert all(isinstance(value, str) for value in one.values())
    page = (Path(__file__).parents[3] / "docs" / "user-guide" / "doctor.md").read_text()
    for key in (*answer, *answer["counts"], *answer["findings"][0]):
        assert f"`{key}`" in page.partition("## For programs")[2]
    done = doctor("--plugin", "no-such")
    assert done.returncode == 2
    assert "no-such" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_late_child_is_ended_with_all_that_it_started(fake_site, tmp_path):
    mark = tmp_path / "pid"
    extra = f"""
    @hookimpl
    def cuda_morph_health_checks():
        import subprocess, sys
        def run():
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            open({str(mark)!r}, "w").write(str(child.pid))
            child.wait()
        yield HealthCheck(id="mychip.slow", summary="s", run=run)
    """
    fake_site.add("mychip", source("mychip", extra=extra))
    outcomes = {one.id: one for one in contained.run("checks", ["mychip"], seconds=5)}
    assert "within" in outcomes["mychip.slow"].error
    state = Path(f"/proc/{mark.read_text()}/stat")
    deadline = time.monotonic() + 20
    while is_running(state) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not is_running(state)


def is_running(state):
    """A killed process stays listed as a zombie until its new parent asks for it."""
    try:
        return state.read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
