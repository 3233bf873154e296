"""Each obstacle between a program and a card is told apart, with other advice for each.

The adapters are stand-ins in a folder; PyTorch is the real one, except where the vendor's build of
PyTorch is itself the thing to be found.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

ADAPTERS = {
    "ascend": ("torch_npu", "npu", "npu-smi", "ASCEND_RT_VISIBLE_DEVICES", "2.12.0", "2.13.0"),
    "biren": ("torch_supa", "supa", "brsmi", "SUPA_VISIBLE_DEVICES", "1.0.0.20600", "1.0.0.21300"),
    "cambricon": (
        "torch_mlu",
        "mlu",
        "cnmon",
        "MLU_VISIBLE_DEVICES",
        "1.25.0+torch2.4.1",
        "1.30.0+torch2.13.0",
    ),
    "enflame": ("torch_gcu", "gcu", "efsmi", "TOPS_VISIBLE_DEVICES", "2.10.0", "2.13.0"),
    "musa": ("torch_musa", "musa", "mthreads-gmi", "MUSA_VISIBLE_DEVICES", "99.0.0", "2.7.1"),
}
"""Module, device type, tool, variable, a version for another PyTorch, one for this PyTorch."""

WORKING = """
import os, sys, types, torch
module = types.ModuleType("torch.{device}")
def device_count():
    if os.environ["FAKE_CARDS"] == "fail":
        raise RuntimeError("driver call failed\\nwith two lines")
    return int(os.environ["FAKE_CARDS"])
module.device_count = device_count
torch.{device} = module
"""

PROGRAM = r"""
import json, os, shutil, sys
from pathlib import Path

folder, adapter, device, tool, variable, other, right, working = sys.argv[1:9]
shims = sys.argv[9:]
folder = Path(folder)
sys.path.insert(0, str(folder))
os.environ["PATH"] = str(folder / "bin")
os.environ.pop(variable, None)

from cuda_morph.records import Detection
import importlib as il
plugin = il.import_module(os.environ["PLUGIN"])
found = {}

def install(version, source):
    for old in folder.glob("*.dist-info"):
        shutil.rmtree(old)
    info = folder / f"{adapter}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {adapter}\nVersion: {version}\n")
    (folder / f"{adapter}.py").write_text(source)
    sys.modules.pop(adapter, None)
    il.invalidate_caches()

def look(case):
    result = plugin.cuda_morph_detect()
    assert isinstance(result, Detection)
    found[case] = [result.available, result.device_count, result.reason, dict(result.details)]

look("adapter_missing")
install(other, "raise AssertionError('must not be imported')")
look("wrong_torch")
assert "torch" not in sys.modules
install(right, "raise ImportError('libvendor_rt.so.1: cannot open shared object file')")
look("library_missing")
install(right, "raise RuntimeError('a bug in the adapter')")
look("import_failed")
install(right, "class Stop(BaseException): pass\nraise Stop('abrupt')")
look("import_failed_abruptly")
assert "torch" not in sys.modules
install(right, working)
os.environ["FAKE_CARDS"] = "fail"
look("driver_failed")
os.environ["FAKE_CARDS"] = "0"
look("driver_missing")
(folder / "bin").mkdir()
program = folder / "bin" / tool
program.write_text("#!/bin/sh\n")
program.chmod(0o755)
look("no_device")
os.environ[variable] = "7"
look("no_device_visible")
os.environ["FAKE_CARDS"] = "3"
look("available")
import types
for shim in shims:
    sys.modules[shim] = types.ModuleType(shim)
    look("shim_active")
    del sys.modules[shim]
import torch
torch.utils.rename_privateuse1_backend("another")
look("slot_taken")
print(json.dumps(found))
"""


def environment(**changes):
    # What the caller's environment would hide from the stand-ins is left out.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TORCH_")}
    return {**kept, "CUDA_MORPH_INHERIT": "", **changes}


@pytest.fixture(scope="module", params=sorted(ADAPTERS))
def outcomes(request, tmp_path_factory):
    import importlib
    import json

    name = request.param
    adapter, device, tool, variable, other, right = ADAPTERS[name]
    shims = importlib.import_module(f"cuda_morph_{name}.identity").SHIMS
    folder = tmp_path_factory.mktemp(name)
    source = WORKING.format(device=device)
    arguments = [str(folder), adapter, device, tool, variable, other, right, source, *shims]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment(PLUGIN=f"cuda_morph_{name}.plugin"),
    )
    assert done.returncode == 0, done.stderr
    return adapter, variable, json.loads(done.stdout.splitlines()[-1])


def test_every_obstacle_has_its_own_name(outcomes):
    _, _, found = outcomes
    problems = {case: details.get("problem") for case, (*_, details) in found.items()}
    assert problems == {
        "adapter_missing": "adapter_missing",
        "wrong_torch": "wrong_torch",
        "library_missing": "library_missing",
        "import_failed": "import_failed",
        "import_failed_abruptly": "import_failed",
        "driver_failed": "driver_failed",
        "driver_missing": "driver_missing",
        "no_device": "no_device",
        "no_device_visible": "no_device",
        "available": None,
        "shim_active": "shim_active",
        "slot_taken": "slot_taken",
    }


def test_reasons_are_one_line_and_differ(outcomes):
    _, _, found = outcomes
    reasons = [reason for available, _, reason, _ in found.values() if not available]
    assert len(set(reasons)) == len(reasons)
    assert all(reason.endswith(".") and "\n" not in reason for reason in reasons)


def test_reasons_name_what_is_wrong(outcomes):
    adapter, variable, found = outcomes
    assert adapter in found["adapter_missing"][2]
    assert "libvendor_rt.so.1" in found["library_missing"][2]
    assert "a bug in the adapter" in found["import_failed"][2]
    assert "driver call failed with two lines" in found["driver_failed"][2]
    assert f"{variable}='7'" in found["no_device_visible"][2]
    assert "another" in found["slot_taken"][2]
    assert "2.13" in found["wrong_torch"][2]


def test_advice_differs_by_obstacle(outcomes):
    _, _, found = outcomes
    advice = {
        case: details["advice"] for case, (available, *_, details) in found.items() if not available
    }
    assert all(advice.values())
    for case in ("library_missing", "driver_missing", "import_failed", "shim_active", "slot_taken"):
        assert advice[case] != advice["adapter_missing"], case


def test_a_working_adapter_is_counted(outcomes):
    _, _, found = outcomes
    available, count, _, details = found["available"]
    assert (available, count) == (True, 3)
    assert details["torch"].startswith("2.13")


NATIVE = {
    "metax": ("2.10.0+metax3.8.0.7", "12.0", None, None, "cuda"),
    "rocm": ("2.10.0+rocm7.1", None, "7.1.25424", None, "cuda"),
    "xpu": ("2.13.0+xpu", None, None, "20250302", "xpu"),
}


@pytest.mark.parametrize("name", sorted(NATIVE))
def test_a_build_of_another_vendor_is_refused_without_importing_it(name):
    code = (
        f"import sys, cuda_morph_{name}.plugin as plugin\n"
        "found = plugin.cuda_morph_detect()\n"
        "assert not found.available\n"
        "assert found.details['problem'] == 'wrong_build', found\n"
        "assert found.details['advice'] and '2.13' in found.reason\n"
        "assert 'torch' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment()
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", sorted(NATIVE))
def test_the_right_build_is_counted(name, tmp_path):
    version, cuda, hip, xpu, device = NATIVE[name]
    package = tmp_path / "torch"
    package.mkdir()
    (package / "version.py").write_text(
        f"__version__ = {version!r}\ncuda: str = {cuda!r}\nhip: str = {hip!r}\nxpu: str = {xpu!r}\n"
    )
    (package / "__init__.py").write_text(
        "import os, types\n"
        f"{device} = types.SimpleNamespace(device_count=lambda: int(os.environ['FAKE_CARDS']))\n"
    )
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        f"import os, cuda_morph_{name}.plugin as plugin\n"
        "os.environ['PATH'] = ''\n"
        "found = plugin.cuda_morph_detect()\n"
        "assert (found.available, found.device_count) == (True, 2), found\n"
        f"assert found.details['torch'] == {version!r}\n"
        "os.environ['FAKE_CARDS'] = '0'\n"
        "found = plugin.cuda_morph_detect()\n"
        "assert found.details['problem'] == 'driver_missing', found\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env=environment(FAKE_CARDS="2"),
    )
    assert done.returncode == 0, done.stderr
