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
    for name in ("VLLM_PLUGINS", "VLLM_TARGET_DEVICE"):
        monkeypatch.delenv(name, raising=False)
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


PUBLISHED = {
    "vllm": {
        "version": "0.33.0",
        "requires": [
            "transformers>=5.5.3",
            "torch==2.14.0",
            "torchaudio==2.11.0",
            "torchvision==0.29.0",
            "torchcodec>=0.14",
            "flashinfer-python==0.7.2.post1",
            'zentorch==2.14.0.1; extra == "zen"',
        ],
        "entry_points": "[console_scripts]\nvllm = vllm.entrypoints.cli.main:main\n"
        "[vllm.general_plugins]\n"
        "lora_filesystem_resolver = "
        "vllm.plugins.lora_resolvers.filesystem_resolver:register_filesystem_resolver\n"
        "lora_hf_hub_resolver = "
        "vllm.plugins.lora_resolvers.hf_hub_resolver:register_hf_hub_resolver\n",
        "files": [
            f"vllm/platforms/{name}.py"
            for name in (
                "__init__", "cpu", "cuda", "interface", "rocm", "tpu", "xpu", "zen_cpu",
            )
        ],
    },
    "vllm_ascend": {
        "version": "0.23.0",
        "requires": [
            "torch==2.10.0",
            "torch-npu==2.10.0.post4",
            "torchvision==0.25.0",
            "torchaudio==2.10.0",
            "triton-ascend==3.2.2",
            "transformers==5.5.4",
        ],
        "entry_points": "[vllm.general_plugins]\n"
        "ascend_kv_connector = vllm_ascend:register_connector\n"
        "ascend_model = vllm_ascend:register_model\n"
        "ascend_model_loader = vllm_ascend:register_model_loader\n"
        "ascend_service_profiling = vllm_ascend:register_service_profiling\n"
        "[vllm.platform_plugins]\nascend = vllm_ascend:register\n",
    },
}  # fmt: skip
"""Metadata of what is published on PyPI: facts, less the requirements that nobody looks at."""


def test_published_metadata(site):
    """Shaped as the real distributions are; those were installed once, and gave the same."""
    site.add("ascend", source("ascend").replace('device_type="fake"', 'device_type="npu"'))
    site.only_fakes()
    for name, facts in PUBLISHED.items():
        install(site, name, **facts)
    install(site, "torch", "2.13.0+cpu")
    found = examine("ascend")
    assert not found.ready
    assert levels(found) == {
        "vllm": "ok",
        "requires.vllm.torch": "fail",
        "requires.vllm.media": "warn",
        "requires.vllm_ascend.torch": "fail",
        "requires.vllm_ascend.torch-npu": "fail",
        "requires.vllm_ascend.media": "warn",
        # The plugin's metadata names no vLLM, and its own number is that of another release.
        "release.vllm_ascend": "warn",
        "platform.ascend": "ok",
    }
    texts = {one.id: one.message for one in found.findings}
    assert texts["vllm"] == "vLLM 0.33.0; its own platforms: cpu, cuda, rocm, tpu, xpu"
    assert texts["requires.vllm.media"].count("it is not installed") == 3
    assert texts["requires.vllm.torch"] == "vllm needs torch==2.14.0 (2.13.0+cpu is installed)"
    assert [one.name for one in found.registered] == [
        "ascend",
        "ascend_kv_connector",
        "ascend_model",
        "ascend_model_loader",
        "ascend_service_profiling",
        "lora_filesystem_resolver",
        "lora_hf_hub_resolver",
    ]
    assert found.notes[0].platform == "ascend of vllm_ascend 0.23.0"


@pytest.mark.parametrize(
    ("own", "requires", "told"),
    [
        ("0.33.1rc1", (), False),
        ("0.32.9", (), True),
        ("0.1", ["vllm>=0.30"], False),
        ("x", (), True),
    ],
)
def test_a_plugin_of_another_release_is_told(site, own, requires, told):
    install(site, "vllm", "0.33.0")
    install(site, "vllm-mychip", own, requires=requires, entry_points=PLATFORM)
    assert ("release.vllm-mychip" in levels(examine("mychip"))) == told


def test_selection_by_the_environment(site, monkeypatch):
    install(site, "vllm")
    model = "[vllm.general_plugins]\nmychip_model = vllm_mychip:register_model\n"
    install(site, "vllm-mychip", entry_points=PLATFORM + model)
    install(site, "vllm-other", entry_points="[vllm.platform_plugins]\nother = o:register\n")
    [several] = [one for one in examine("mychip").findings if one.id == "platforms"]
    assert several.level.value == "warn"
    # The platform alone would leave out what its own distribution registers beside it.
    assert "VLLM_PLUGINS=mychip,mychip_model" in several.fix
    monkeypatch.setenv("VLLM_PLUGINS", "other, mychip")  # vLLM takes spaces as they are
    found = examine("mychip")
    assert "platforms" not in levels(found)
    assert levels(found)["selection"] == "warn"
    assert levels(found)["platform.mychip"] == "fail"
    assert [one.name for one in found.registered if not one.loaded] == ["mychip", "mychip_model"]


def test_the_cpu_as_target_leaves_every_plugin_out(site, monkeypatch):
    install(site, "vllm", files=FILES)
    install(site, "vllm-mychip", entry_points=PLATFORM)
    assert levels(examine("mychip"))["platform.mychip"] == "ok"
    monkeypatch.setenv("VLLM_TARGET_DEVICE", "CPU")
    assert levels(examine("mychip"))["platform.mychip"] == "fail"
    assert levels(examine("cpu"))["platform.cpu"] == "ok"


@pytest.mark.parametrize(
    ("version", "level"), [("0.33.0", "warn"), ("0.33.0+cu129", "warn"), ("0.33.0+cpu", "ok")]
)
def test_an_own_platform_is_in_every_build(site, version, level):
    install(site, "vllm", version, files=FILES)
    assert levels(examine("cpu"))["platform.cpu"] == level


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


def test_two_platform_plugins_of_one_name(site):
    for name in ("vllm-mychip", "vllm-mychip2"):
        install(site, name, entry_points=PLATFORM)
    [asked] = [one for one in examine("mychip", full=True).findings if one.id == "asked.mychip"]
    assert asked.level.value == "fail"
    assert "vllm-mychip and vllm-mychip2 register" in asked.message


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
