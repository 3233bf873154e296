"""What must not grow unnoticed. The tight ratios are measured by ``nox -s bench``."""

import json
import os
import subprocess
import sys

import pytest

MODULES_OF_AN_ACTIVATION = 48
"""Core's own and the compiled tier's. `nox -s bench` counts two more, which `import torch` loads."""


def python(code, **variables):
    """Runs code in a fresh interpreter and returns the JSON it prints last."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_MORPH_")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**kept, **variables},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_start_without_torch_imports_none():
    code = """
import json, sys
import cuda_morph
from cuda_morph import activate, deactivate, info, is_active
info()
print(json.dumps(sorted(sys.modules)))
"""
    found = python(code)
    assert "torch" not in found
    assert not [name for name in found if name.startswith(("cuda_morph.device", "rich", "click"))]


def test_import_of_the_package_alone_imports_nothing_of_it():
    code = """
import json, sys
import cuda_morph
print(json.dumps([name for name in sys.modules if name.startswith(("cuda_morph", "pluggy"))]))
"""
    assert python(code) == ["cuda_morph"]


@pytest.mark.parametrize("tier", ["T0", "T1"])
def test_activation_imports_little_and_no_compiler(tier):
    code = """
import json, sys
import torch
before = set(sys.modules)
import cuda_morph
from cuda_morph.errors import TierError
try:
    cuda_morph.activate("cpu", view="cuda")
except TierError:
    print("null")
else:
    print(json.dumps(sorted(set(sys.modules) - before)))
"""
    new = python(code, CUDA_MORPH_TIER=tier)
    if new is None:
        pytest.skip(f"tier {tier} does not work here")
    assert len(new) <= MODULES_OF_AN_ACTIVATION, new
    foreign = [name for name in new if not name.startswith("cuda_morph")]
    assert not foreign


def test_import_torch_loads_two_modules_of_core_when_nothing_is_asked():
    code = """
import json, sys
import torch
print(json.dumps([name for name in sys.modules if name.startswith(("cuda_morph", "pluggy"))]))
"""
    assert set(python(code)) <= {"cuda_morph", "cuda_morph.inheritance"}


IDENTITIES = """
import builtins, json
import torch, cuda_morph

def seen():
    owners = (torch, torch.cuda, torch.Tensor, torch._C.TensorBase, torch.nn.Module, builtins)
    found = {f"{owner.__name__}.{name}": id(value)
             for owner in owners for name, value in vars(owner).items() if name != "_"}
    hot = ("synchronize", "current_device", "device_count", "is_available", "memory_allocated")
    found |= {f"code of {name}": id(getattr(torch.cuda, name).__code__) for name in hot}
    return found

cuda_morph.activate("cpu", view="cuda")  # the first one imports submodules
cuda_morph.deactivate()
inactive = seen()
cuda_morph.activate("cpu", view="cuda")
active = seen()
cuda_morph.deactivate()
print(json.dumps({
    "changed": sorted(name for name in inactive | active if inactive.get(name) != active.get(name)),
    "left": sorted(name for name in inactive | seen() if inactive.get(name) != seen().get(name)),
}))
"""


def test_hot_objects_of_pytorch_stay_the_same_objects():
    changed = python(IDENTITIES)["changed"]
    for name in ("torch.device", "torch.empty", "torch.zeros", "torch.tensor", "torch.Tensor"):
        assert name not in changed
    for name in ("to", "cpu", "add", "shape", "dtype", "device", "__add__", "is_cpu"):
        assert f"Tensor.{name}" not in changed
    assert not [name for name in changed if name.startswith(("TensorBase.", "builtins."))]
    assert {"Tensor.cuda", "Tensor.is_cuda", "code of synchronize"} <= set(changed)


def test_deactivation_leaves_nothing_changed():
    assert python(IDENTITIES)["left"] == []


def test_warm_activation_and_deactivation_are_short():
    code = """
import json, time
import torch, cuda_morph
warm, off = [], []
for _ in range(30):
    start = time.process_time()
    cuda_morph.activate("cpu", view="cuda")
    middle = time.process_time()
    cuda_morph.deactivate()
    warm.append(middle - start)
    off.append(time.process_time() - middle)
print(json.dumps([min(warm), min(off)]))
"""
    warm, off = python(code)
    assert warm < 0.009, "three times the budget of nox -s bench"
    assert off < 0.0004, "four times the budget"


def test_the_device_table_is_searched_quickly():
    code = """
import json, sys, time
import torch
from cuda_morph.interception import device_table
if device_table.obstacle():
    print("null")
else:
    start = time.process_time()
    device_table.locate()
    print(json.dumps(time.process_time() - start))
"""
    seconds = python(code)
    if seconds is None:
        pytest.skip("the device table is not known here")
    assert seconds < 0.015


def test_cuda_asks_a_subclass_with_a_to_of_its_own():
    code = """
import json
import torch, cuda_morph
class Mine(torch.Tensor):
    def to(self, *args, **kwargs):
        return "mine"
with cuda_morph.activate("cpu"):
    value = torch.ones(1)
    print(json.dumps([value.as_subclass(Mine).cuda(), value.cuda() is value]))
"""
    assert python(code) == ["mine", True]
