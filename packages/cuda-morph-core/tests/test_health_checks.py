"""Health checks for plugins: they look when asked, and say what they saw."""

import inspect
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import torch

from cuda_morph import health_checks as make
from cuda_morph.torch_build import TorchBuild, torch_build
from cuda_morph.visible_lists import integers


def test_a_tool_is_looked_for_when_asked(tmp_path, monkeypatch):
    check = make.tool_on_path("mychip.tool", "mychip-smi", fix="Install it.")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert check.run().ok is False
    tool = tmp_path / "mychip-smi"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    result = check.run()
    assert result.ok
    assert str(tool) in result.message


def test_a_folder_may_be_there_missing_or_unnamed(tmp_path, monkeypatch):
    check = make.folder_named("mychip.sdk", "MYCHIP_HOME", fix="")
    monkeypatch.delenv("MYCHIP_HOME", raising=False)
    assert check.run().ok is None
    monkeypatch.setenv("MYCHIP_HOME", str(tmp_path))
    assert check.run().ok
    monkeypatch.setenv("MYCHIP_HOME", str(tmp_path / "gone"))
    assert check.run().ok is False


def test_a_library_is_opened_or_not_found():
    assert make.library_opens("c", "libc.so.6", fix="").run().ok
    missing = make.library_opens("x", "libmychip_rt.so.9", fix="").run()
    assert missing.ok is False
    assert "libmychip_rt.so.9" in missing.message


def test_a_library_that_stops_the_process_stops_the_child_only(tmp_path):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    source = tmp_path / "abrupt.c"
    source.write_text("#include <stdlib.h>\n__attribute__((constructor)) void go(){abort();}\n")
    library = tmp_path / "libabrupt.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    result = make.library_opens("x", str(library), fix="").run()
    assert result.ok is False
    assert "exit status" in result.message


@pytest.mark.parametrize(
    ("required", "ok"), [("1.0", False), (metadata.version("pytest"), False), (None, None)]
)
def test_versions_are_compared_with_pytorchs(required, ok):
    result = make.versions_fit("v", "pytest", lambda _: required, fix="").run()
    assert result.ok is ok


def test_versions_that_fit_and_an_adapter_that_is_absent():
    version = metadata.version("torch").partition("+")[0]
    assert make.versions_fit("v", "pytest", lambda _: version, fix="").run().ok
    assert make.versions_fit("v", "torch-mychip", lambda _: version, fix="").run().ok is None


def test_the_build_of_pytorch_is_judged():
    build = torch_build()
    assert isinstance(build, TorchBuild)
    assert build.version == torch.__version__
    assert (build.cuda, build.hip) == (torch.version.cuda, torch.version.hip)
    assert make.build_fits("b", lambda _: "", fix="").run().ok
    result = make.build_fits("b", lambda found: f"{found.version} is wrong.", fix="").run()
    assert result.ok is False
    assert result.message == f"{torch.__version__} is wrong."


def test_variables_may_agree_or_not(monkeypatch):
    check = make.variables_agree("v", (("MC_A", "MC_B"),), fix="")
    strict = make.variables_agree("v", (("MC_A", "MC_B"),), fix="", even_if_equal=True)
    monkeypatch.setenv("MC_A", "1")
    monkeypatch.delenv("MC_B", raising=False)
    assert check.run().ok
    assert strict.run().ok
    monkeypatch.setenv("MC_B", "1")
    assert check.run().ok
    assert strict.run().ok is False
    monkeypatch.setenv("MC_B", "2")
    assert check.run().ok is False
    assert "MC_A='1', MC_B='2'" in check.run().message


def test_visible_devices_are_read_as_the_runtime_does(monkeypatch):
    check = make.visible_devices("v", {"MC_VISIBLE": integers}, fix="")
    monkeypatch.delenv("MC_VISIBLE", raising=False)
    assert check.run().message == "every device is visible"
    monkeypatch.setenv("MC_VISIBLE", "0,1")
    assert check.run().ok
    monkeypatch.setenv("MC_VISIBLE", "0.1")
    assert check.run().ok is False


def test_another_layer_is_seen_when_it_starts_with_python(monkeypatch):
    check = make.shims_off("x", ("shim_that_is_loaded",), variables=("MYCHIP_SHIM",), fix="")
    monkeypatch.setenv("MYCHIP_SHIM", "0")
    assert check.run().ok
    monkeypatch.setenv("MYCHIP_SHIM", "1")
    assert "MYCHIP_SHIM=1" in check.run().message
    monkeypatch.delenv("MYCHIP_SHIM")
    monkeypatch.setitem(sys.modules, "shim_that_is_loaded", pytest)
    assert check.run().ok is False


def test_the_guide_lists_every_maker():
    guide = (Path(__file__).parents[3] / "docs" / "plugin-author-guide.md").read_text()
    section = guide.partition("| maker | the check |")[2].partition("\n\n")[0]
    listed = re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE)
    makers = [
        name
        for name, value in vars(make).items()
        if inspect.isfunction(value)
        and not name.startswith("_")
        and value.__module__ == make.__name__
    ]
    assert listed == makers
