"""``cuda-morph vllm``: what is installed and registered, also where it is broken."""

import json

import pytest
from click.testing import CliRunner
from fake_distributions import source

from cuda_morph.cli.group import cli
from cuda_morph.diagnosis.serving import examine

QUANTIZATION = """
@hookimpl
def cuda_morph_quantization():
    yield QuantizationMethod(method="w8a8", support=Support.PARTIAL, source="vllm-mychip 1.0")
    yield QuantizationMethod(method="awq", support=Support.UNKNOWN, source="vllm-mychip 1.0")
    yield QuantizationMethod(method="hqq", support=Support.FULL, source="somebody else")
"""


def install(site, name, version="1.0", *, requires=(), entry_points="", files=()):
    folder = site.root / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir()
    lines = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}"]
    lines += [f"Requires-Dist: {text}" for text in requires]
    (folder / "METADATA").write_text("\n".join(lines) + "\n")
    (folder / "entry_points.txt").write_text(entry_points)
    (folder / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    site.changed()


def module(site, name, code):
    (site.root / f"{name}.py").write_text(code)
    site.modules.append(name)
    site.changed()


@pytest.fixture
def site(fake_site, monkeypatch):
    monkeypatch.delenv("VLLM_PLUGINS", raising=False)
    fake_site.add("mychip", source("mychip", extra=QUANTIZATION))
    return fake_site


def levels(found):
    return {finding.id: finding.level.value for finding in found.findings}


def test_not_installed(site):
    found = examine("mychip")
    assert found.version is None
    assert not found.ready
    assert levels(found) == {"vllm": "fail"}
    [note] = found.notes
    assert note.platform == ""
    assert note.quantization == ("w8a8",)


PLATFORM = "[vllm.platform_plugins]\nmychip = vllm_mychip:register\n"
FILES = ("vllm/platforms/cpu.py", "vllm/platforms/interface.py", "vllm/platforms/__init__.py")


def test_ready(site):
    install(site, "vllm", "0.20.0", files=FILES)
    install(site, "vllm-mychip", "0.20.1", requires=["vllm==0.20.0"], entry_points=PLATFORM)
    module(site, "vllm_mychip", "def register():\n    return 'vllm_mychip.Platform'\n")
    found = examine("mychip", full=True)
    assert found.ready, found.findings
    assert levels(found) == {"vllm": "ok", "platform.mychip": "ok", "asked.mychip": "ok"}
    assert found.notes[0].platform == "mychip of vllm-mychip 0.20.1"
    assert examine("cpu").notes[0].platform == "cpu of vLLM itself"


def test_a_backend_under_the_name_cuda_is_not_served_by_the_platform_for_cuda(site):
    site.add("cudalike", source("cudalike").replace('device_type="fake"', 'device_type="cuda"'))
    install(site, "vllm", files=["vllm/platforms/cuda.py"])
    assert levels(examine("cudalike"))["platform.cudalike"] == "fail"


def test_no_platform_for_the_backend(site):
    install(site, "vllm", files=FILES)
    found = examine("mychip")
    assert levels(found) == {"vllm": "ok", "platform.mychip": "fail"}


@pytest.mark.parametrize(
    ("requirement", "failed"),
    [
        ("torch==1.0", True),
        ("torch_of_mychip>=2", True),
        ("vllm>=9", True),
        ("torch>=1.0", False),
        ("torch==1.0; extra == 'other'", False),
        ("torch==1.0; python_version < '3'", False),
        ("unrelated==7", False),
        ("!! no requirement !!", False),
    ],
)
def test_requirements_are_compared(site, requirement, failed):
    install(site, "vllm")
    install(site, "torch", "2.13.0")
    install(site, "vllm-mychip", requires=[requirement], entry_points=PLATFORM)
    found = examine("mychip")
    assert any(level == "fail" for level in levels(found).values()) == failed


def test_selection_by_the_environment(site, monkeypatch):
    install(site, "vllm")
    install(site, "vllm-mychip", entry_points=PLATFORM)
    install(site, "vllm-other", entry_points="[vllm.platform_plugins]\nother = o:register\n")
    assert levels(examine("mychip"))["platforms"] == "warn"
    monkeypatch.setenv("VLLM_PLUGINS", "other")
    found = examine("mychip")
    assert "platforms" not in levels(found)
    assert levels(found)["selection"] == "warn"
    assert [one.name for one in found.registered if not one.loaded] == ["mychip"]


@pytest.mark.parametrize(
    ("code", "level", "words"),
    [
        ("def register():\n    return None\n", "unknown", "not here"),
        ("def register():\n    raise OSError('no driver')\n", "fail", "no driver"),
        ("import os; os.abort()\n", "fail", "signal 6"),
        ("register = 7\n", "fail", "not callable"),
        ("def register():\n    return 7\n", "fail", "must answer"),
        ("import nothing_of_this_name\n", "fail", "nothing_of_this_name"),
    ],
)
def test_platform_plugins_are_asked_in_a_child(site, code, level, words):
    install(site, "vllm-mychip", entry_points=PLATFORM)
    module(site, "vllm_mychip", code)
    assert "asked.mychip" not in levels(examine("mychip"))
    [asked] = [one for one in examine("mychip", full=True).findings if one.id == "asked.mychip"]
    assert asked.level.value == level
    assert words in asked.message


def test_command_line(site):
    def vllm(*words):
        result = CliRunner().invoke(cli, ["vllm", *words], standalone_mode=False)
        return result.return_value, result.output

    code, out = vllm()
    assert code == 1
    assert "vLLM is not installed" in out
    assert "w8a8" in out
    install(site, "vllm", files=FILES)
    code, out = vllm("--backend", "cpu", "--format", "json")
    assert code == 0
    assert json.loads(out)["version"] == "1.0"
    result = CliRunner().invoke(cli, ["vllm", "--backend", "no-such"], standalone_mode=False)
    assert type(result.exception).__name__ == "UnknownBackendError"
