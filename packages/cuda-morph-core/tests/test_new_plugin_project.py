"""The project that ``cuda-morph new-plugin`` writes: its README, tools and tasks do what they say."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cuda_morph.record_files import read_records, read_surface
from cuda_morph.records import CapabilityClaim, ErrorCode
from cuda_morph.scaffolding.plugin_project import describe, plugin_files
from cuda_morph.scaffolding.project_files import write_project

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def project(tmp_path):
    """A new plugin, as it is written."""
    folder = tmp_path / "new"
    plugin = describe("mychip", vendor="MyChip Inc.", collective="mcl")
    write_project(plugin_files(plugin), folder)
    return folder


def tool(*arguments, cwd, env=None):
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def shown(project, language):
    """The blocks of code in the README."""
    text = (project / "README.md").read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_the_readme_shows_files_that_can_be_read(project, tmp_path):
    claims, codes = shown(project, "json")
    (tmp_path / "claims.json").write_text(claims)
    (tmp_path / "codes.json").write_text(codes)
    found = read_records(tmp_path / "claims.json", CapabilityClaim)
    assert [one.support.value for one in found] == ["full", "full", "not_yet"]
    [code] = read_records(tmp_path / "codes.json", ErrorCode)
    assert code.semantic == "out_of_memory"


def test_the_readme_names_what_there_is(project):
    from cuda_morph import hookspecs, records

    text = (project / "README.md").read_text()
    rows = re.findall(r"^\| `(cuda_morph_\w+)` \| `(\w+)` \|", text, flags=re.MULTILINE)
    assert len(rows) >= 5
    for hook, record in rows:
        assert hasattr(hookspecs, hook)
        assert hasattr(records, record)
    commands = re.findall(r"python -c \"([^\"]+)\"", text)
    assert len(commands) == 2
    listed = tool("-c", ";".join(one.replace(r"\n", "\\n") for one in commands), cwd=project)
    assert "graph.capture" in listed
    assert "out_of_memory" in listed
    blanks = {
        path.name for path in project.rglob("*") if path.is_file() and "BLANK" in path.read_text()
    }
    for name in blanks - {"README.md"}:
        assert f"`{name}`" in text or f"/{name}`" in text, name


def test_the_workflow_runs_sessions_that_exist(project):
    text = (project / ".github" / "workflows" / "ci.yml").read_text()
    [listed] = re.findall(r"session: \[(.*)\]", text)
    sessions = re.findall(r"@nox.session\ndef (\w+)", (project / "noxfile.py").read_text())
    assert sorted(listed.split(", ")) == sorted(sessions)
    assert re.findall(r"- run: (.*)", text) == ["pip install nox", "nox -s ${{ matrix.session }}"]


def test_the_workflow_is_one(project):
    pytest.importorskip("check_jsonschema")
    file = project / ".github" / "workflows" / "ci.yml"
    schema = ["-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
    assert "ok" in tool(*schema, file, cwd=project)


ADAPTER = """
import os
import torch
from torch import Tensor
from torch_mychip import chip

__version__ = "1.2"
torch.utils.rename_privateuse1_backend("mychip")
torch._register_device_module("mychip", chip)
"""
DEVICE_MODULE = """
import os
import torch
from typing import Any, Optional
from torch import Tensor
from torch.cuda import is_initialized
from . import helpers

__all__ = ["is_initialized"]
default_generators = ()

def is_available() -> bool: return False
def device_count() -> int: return 0
def _is_in_bad_fork() -> bool: return False
def memory_stats(device=None, *args, **options): return {}

class Stream:
    def __init__(self, device=None): pass
    def synchronize(self): pass
    @classmethod
    def make(cls, handle): return cls()
    @property
    def handle(self): return 0
    def _private(self): pass
"""


def test_the_surface_is_read_from_the_adapter(project, tmp_path):
    package = tmp_path / "adapter" / "torch_mychip"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(ADAPTER)
    (package / "chip.py").write_text(DEVICE_MODULE)
    (package / "helpers.py").write_text("")
    env = {"PYTHONPATH": str(package.parent)}
    assert "10 names" in tool("tools/read_surface.py", cwd=project, env=env)
    file = project / "src" / "cuda_morph_mychip" / "data" / "surface.json"
    surface = read_surface(file)
    assert (surface.module, surface.version) == ("torch.mychip", "1.2")
    assert {one.name: (one.kind, one.parameters) for one in surface.names} == {
        "Stream": ("class", None),
        "Stream.make": ("method", ("handle",)),
        "Stream.synchronize": ("method", ("self",)),
        "_is_in_bad_fork": ("function", ()),
        "default_generators": ("constant", None),
        "device_count": ("function", ()),
        "helpers": ("module", None),
        "is_available": ("function", ()),
        "is_initialized": ("function", ()),
        "memory_stats": ("function", ("device", "*args", "**options")),
    }


def test_without_the_adapter_no_surface_is_written(project):
    file = project / "src" / "cuda_morph_mychip" / "data" / "surface.json"
    before = file.read_text()
    done = subprocess.run(
        [sys.executable, "tools/read_surface.py"],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "torch_mychip" in done.stderr
    assert "Traceback" not in done.stderr
    assert file.read_text() == before


@pytest.mark.long
@pytest.mark.timeout(900)
def test_tasks_run_in_environments_of_their_own(project, tmp_path):
    pytest.importorskip("nox")
    core = ["pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    tool("-m", *core, "-w", tmp_path, REPOSITORY / "packages" / "cuda-morph-core", cwd=tmp_path)
    links = f"{tmp_path} {os.environ.get('PIP_FIND_LINKS', '')}"
    options = ["--default-venv-backend", "virtualenv", "-s", "tests", "lint", "types"]
    tool("-m", "nox", *options, cwd=project, env={"PIP_FIND_LINKS": links})


DECLINED = """
    attn.alibi attn.dropout attn.gqa attn.kvcache attn.mask attn.sliding_window attn.softcap
    attn.transformers attn.varlen compile.aot compile.triton device.utilization event.ipc ext.build
    ext.load ext.symbol_map graph.callables graph.capture graph.pool graph.replay io.share
    memory.fraction memory.pool memory.snapshot stream.external
"""
"""The capabilities that a certification of the unchanged project names where a check fails."""
KERNEL = """

@hookimpl
def cuda_morph_attention_kernels() -> Iterable[AttentionKernel]:
    yield AttentionKernel(name="mychip_fused", forward=_fused, features=("causal", "backward"))


def _fused(query, key, value, *, scale, causal=False):
    return adapter_module().fused_attention(query, key, value, scale, causal)
"""
FUNCTIONS = """
def _functions():
    import torch

    def fused_attention(query, key, value, scale, causal):
        q, k, v = (one.transpose(1, 2).float() for one in (query, key, value))
        scores = q @ k.transpose(-1, -2) * scale
        if causal:
            keep = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device)
            keep = keep.tril(k.shape[-2] - q.shape[-2])
            scores = scores.masked_fill(~keep, float("-inf"))
        return (scores.softmax(-1).nan_to_num(0.0) @ v).transpose(1, 2).to(query.dtype)

    return {"fused_attention": fused_attention}


PERSONALITY ="""


def change(file, *changes):
    text = file.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    file.write_text(text)


def fill_blanks(project):
    """Does what the README says, as the author of the plugin would."""
    package = project / "src" / "cuda_morph_mychip"
    change(
        package / "identity.py", ("visible_devices_env=None", 'visible_devices_env="MC_VISIBLE"')
    )
    rows = [{"id": name} for name in DECLINED.split()]
    claims = {"groups": [{"common": {"support": "not_yet"}, "rows": rows}]}
    (package / "data" / "claims.json").write_text(json.dumps(claims))
    (package / "data" / "error_codes.json").write_text(shown(project, "json")[1])
    change(
        package / "personality.py",
        ("error_texts={}", 'error_texts={"out_of_memory": "MyChip out of memory (2)"}'),
        ("functions=None", "functions=_functions"),
        ("PERSONALITY =", FUNCTIONS),
    )
    adapter, hooks = "from cuda_morph.adapter import adapter_module\n", "from cuda_morph.hookspecs"
    change(
        package / "plugin.py",
        ("import CapabilityClaim,", "import AttentionKernel, CapabilityClaim,"),
        (hooks, adapter + hooks),
    )
    with (package / "plugin.py").open("a") as file:
        file.write(KERNEL)


def install(project, place):
    """Builds the wheel and unpacks it, with nothing from outside; returns the environment."""
    wheels, site = place / "wheels", place / "site"
    pip = ["-m", "pip", "--disable-pip-version-check", "--no-cache-dir"]
    offline = ["--no-deps", "--no-index"]
    tool(*pip, "wheel", "-q", "--no-build-isolation", *offline, "-w", wheels, ".", cwd=project)
    [wheel] = wheels.iterdir()
    tool(*pip, "install", "-q", *offline, "--target", site, wheel, cwd=project)
    return {"PYTHONPATH": str(site)}


SUITE = ("-m", "cuda_morph_conformance")


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_new_plugin_loads_at_once_and_accelerates_when_its_blanks_are_filled(project, tmp_path):
    env = install(project, tmp_path / "before")
    rows = tool("-m", "cuda_morph", "plugins", cwd=tmp_path, env=env)
    [row] = [line for line in rows.splitlines() if line.startswith("mychip ")]
    assert "unavailable" in row
    assert "torch_mychip is not installed" in row
    tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider"]
    assert "4 passed" in tool(*tests, cwd=project, env=env)
    text = tool(*SUITE, "run", "--plugin", "mychip", "--level", "loads", cwd=tmp_path, env=env)
    assert "0 failed, 0 missing - level reached: loads" in text
    assert "as sim:mychip" in text
    fill_blanks(project)
    env = install(project, tmp_path / "after")
    assert "4 passed" in tool(*tests, cwd=project, env=env)
    certify = ["run", "--plugin", "mychip", "--certify", "--out", "out"]
    text = tool(*SUITE, *certify, cwd=tmp_path, env=env)
    assert "0 failed, 0 missing" in text
    assert "level reached: accelerates - evidence: simulated" in text
    assert "it adds up" in tool(*SUITE, "verify", "out/mychip", cwd=tmp_path, env=env)
