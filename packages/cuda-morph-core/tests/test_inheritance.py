"""Activation at ``import torch``: never in the way, never silent about a failure."""

import json
import os
import subprocess
import sys

import pytest

from cuda_morph import inheritance
from cuda_morph.errors import SettingError


def python(source, **env):
    clean = {name: value for name, value in os.environ.items() if "CUDA_MORPH" not in name}
    done = subprocess.run(
        [sys.executable, "-c", source],
        check=False,
        capture_output=True,
        text=True,
        env={**clean, **env},
        timeout=120,
    )
    return done.returncode, done.stdout, done.stderr


SHOW = """
import torch, cuda_morph
info = cuda_morph.info()
print(info.active, info.backend, info.view, info.tier, torch.zeros(1, device="cpu").item())
"""


def test_settings_survive_the_environment():
    settings = {"backend": "cpu", "view": "cuda", "fallback": "error", "tier": None}
    assert inheritance.decode(inheritance.encode(**settings)) == settings


@pytest.mark.parametrize("text", ["", "no", "[]", "{", '{"backend": 3}', "null"])
def test_other_texts_are_refused(text):
    with pytest.raises(SettingError, match="CUDA_MORPH_INHERIT"):
        inheritance.decode(text)


def test_nothing_happens_and_nothing_is_loaded_without_a_variable():
    source = """
import sys
from cuda_morph.inheritance import autoload
autoload()
print(sorted(name for name in sys.modules if name.startswith("cuda_morph")), "json" in sys.modules)
"""
    assert python(source) == (0, "['cuda_morph', 'cuda_morph.inheritance'] False\n", "")


def test_torch_calls_the_entry_point():
    value = inheritance.encode(backend="cpu", view="native", fallback=None, tier="T3")
    assert python(SHOW, CUDA_MORPH_INHERIT=value) == (0, "True cpu native T3 0.0\n", "")


def test_opt_in_variable():
    code, out, _ = python(SHOW, CUDA_MORPH_AUTO_ACTIVATE="1", CUDA_MORPH_BACKEND="cpu")
    assert (code, out.split()[:3]) == (0, ["True", "cpu", "native"])
    code, out, err = python(SHOW, CUDA_MORPH_AUTO_ACTIVATE="0")
    assert (code, out.split()[0], err) == (0, "False", "")


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"CUDA_MORPH_INHERIT": "garbage"}, "CM-E06"),
        ({"CUDA_MORPH_INHERIT": json.dumps({"backend": "nonsense"})}, "CM-E01"),
        ({"CUDA_MORPH_AUTO_ACTIVATE": "perhaps"}, "CM-E06"),
    ],
)
def test_a_failure_is_one_line_and_torch_is_usable(env, words):
    code, out, err = python(SHOW, **env)
    assert (code, out) == (0, "False None None None 0.0\n")
    assert words in err
    assert err.count("\n") == 1


def test_a_failure_without_standard_error():
    source = "import sys; sys.stderr = None\nimport torch; print(torch.ones(1).item())"
    assert python(source, CUDA_MORPH_INHERIT="garbage") == (0, "1.0\n", "")


def test_explicit_activation_joins_the_inherited_one():
    value = inheritance.encode(backend="cpu", view="cuda", fallback=None, tier=None)
    source = """
import cuda_morph
activation = cuda_morph.activate("cpu")
import torch
print(activation.view, cuda_morph.activate("cpu") is activation, torch.cuda.is_available())
"""
    code, out, err = python(source, CUDA_MORPH_INHERIT=value)
    assert (code, out, err) == (0, "cuda True True\n", "")


def test_import_and_go():
    source = """
import cuda_morph.auto, torch
print(cuda_morph.is_active(), cuda_morph.auto.activation.backend.name, torch.ones(1).cuda().item())
"""
    assert python(source, CUDA_MORPH_BACKEND="cpu") == (0, "True cpu 1.0\n", "")
    code, _, err = python("import cuda_morph.auto", CUDA_MORPH_BACKEND="nonsense")
    assert code == 1
    assert "CM-E01" in err


@pytest.mark.parametrize("order", ["before", "after"])
def test_a_vendors_own_entry_point_may_run_before_or_after(tmp_path, order):
    def distribution(folder, name, entry):
        info = tmp_path / folder / f"{name.replace('-', '_')}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[torch.backends]\n{entry}\n")

    distribution("vendor", "torch-vendor", "torch_vendor = torch_vendor:autoload")
    distribution("core", "cuda-morph-core", "cuda_morph = cuda_morph.inheritance:autoload")
    (tmp_path / "vendor/torch_vendor.py").write_text(
        "def autoload():\n"
        "    import torch, cuda_morph\n"
        "    print('vendor', cuda_morph.is_active(), torch.zeros(1, device='cpu').item())\n"
    )
    with (tmp_path / "core/cuda_morph_core-1.0.dist-info/entry_points.txt").open("a") as file:
        file.write("[cuda_morph.plugins]\ncpu = cuda_morph.builtin.cpu\n")
    folders = ["vendor", "core"] if order == "before" else ["core", "vendor"]
    path = [*(str(tmp_path / name) for name in folders), os.environ.get("PYTHONPATH", "")]
    value = inheritance.encode(backend="cpu", view="cuda", fallback=None, tier=None)
    code, out, err = python(
        SHOW, CUDA_MORPH_INHERIT=value, PYTHONPATH=os.pathsep.join(filter(None, path))
    )
    assert (code, err) == (0, "")
    first, second = out.splitlines()
    assert first == f"vendor {order == 'after'} 0.0"
    assert second.startswith("True cpu cuda")
