"""The simulated device in the place of another plugin's adapter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SITE = Path(__file__).parents[2] / "cuda-morph-core" / "tests" / "tier_programs" / "simulated_site"


def run(code: str, *arguments: str, check: bool = True, **settings: str):
    """Runs code under a simulated adapter, as a user would."""
    environment = {name: value for name, value in os.environ.items() if "VISIBLE" not in name}
    paths = [str(SITE), environment.get("PYTHONPATH", "")]
    environment |= {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "cuda_morph", "run", *arguments, "-c", code],
        env=environment | settings,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert not check or done.returncode == 0, done.stderr[-4000:]
    return done


FACTS = """
import json, torch, cuda_morph
from cuda_morph.adapter import adapter_module
device = torch.narrowcard if hasattr(torch, "narrowcard") else torch.widecard
adapter = adapter_module()
x = torch.ones(2, device="cuda")
info = cuda_morph.info()
report = {
    "names": sorted(name for name in vars(device) if not name.startswith("__")),
    "printed": str(x.device),
    "name": torch.cuda.get_device_name(),
    "version": adapter.__version__,
    "adapter": adapter.__name__,
    "requested": info.requested,
    "simulated": info.simulated,
    "backend": info.backend,
}
"""


@pytest.fixture(scope="module")
def narrow():
    code = FACTS + "print(json.dumps(report))"
    done = run(code, "--backend", "sim:narrow", "--view", "native", "--quiet")
    return json.loads(done.stdout), done.stderr


def test_a_simulated_run_cannot_be_taken_for_a_real_one(narrow):
    facts, errors = narrow
    assert (facts["requested"], facts["backend"]) == ("sim:narrow", "narrow")
    assert facts["simulated"] is True
    assert facts["name"] == "Test narrow (simulated)"
    assert facts["version"] == "1.2.3+simulated"
    banner = [line for line in errors.splitlines() if "building the simulated" not in line]
    assert len(banner) == 1, "a quiet run writes the banner and nothing else"
    assert "SIMULATED Test narrow (sim:narrow)" in banner[0]


def test_devices_have_the_vendor_s_type(narrow):
    facts, _ = narrow
    assert facts["printed"] == "narrowcard:0"
    assert facts["adapter"] == "torch_narrow"


def test_what_the_adapter_lacks_is_missing_there_too():
    code = """
import json, torch, cuda_morph
with cuda_morph.activate("sim:narrow"):
    pass
print(json.dumps(sorted(name for name in vars(torch.narrowcard) if not name.startswith("__"))))
"""
    sys.path.insert(0, str(SITE))
    try:
        from adapters_to_simulate.narrow import NAMES
    finally:
        sys.path.remove(str(SITE))
    plain = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": f"{SITE}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(plain.stdout) == sorted(NAMES)


WIDE = """
import torch, inspect, pickle
from cuda_morph.adapter import adapter_module
from cuda_morph_sim import faults
from cuda_morph_sim.adapter_calls import NotSimulatedError

def raises(kind, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except kind as error:
        return str(error)
    raise AssertionError("nothing was raised")

card = torch.widecard
assert list(inspect.signature(card.get_device_name).parameters) == ["device_name"]
assert card.get_device_name(device_name=1) == "Testcard 1 (simulated)"
raises(TypeError, card.get_device_name, device=1)
assert card.can_device_access_peer(device_id=0, peer_device_id=1)
card.empty_cache(device=0)
card.set_device(device=1)
assert card.current_device() == 1
card.set_device(0)

properties = card.get_device_properties(0)
assert (properties.name, properties.cores) == ("Testcard 1 (simulated)", 12)
assert properties.total_memory == card.mem_get_info()[1]
assert not hasattr(properties, "major")
assert card.get_device_capability() == {"generation": 3}
assert torch.cuda.get_device_capability() == (8, 0)
assert torch.cuda.get_device_properties(0).major == 8

stream = card.Stream(device=0, priority=0)
assert isinstance(stream, torch.Stream) and stream.widecard_stream == stream.stream_id
with card.stream(stream):
    assert card.current_stream() == stream and isinstance(card.current_stream(), card.Stream)
assert card.default_stream().stream_id == 0
with card.StreamContext(stream), card.StreamContext(None):
    pass
raises(NotSimulatedError, stream.of_this_vendor)
event = card.Event(enable_timing=True)
event.record(stream)
event.synchronize()

assert "torch.widecard.utilization is not simulated" in raises(
    NotImplementedError, card.utilization)
raises(NotSimulatedError, card.CUDAGraph)
assert not isinstance(1, card.CUDAGraph)
assert card.memory.memory_allocated is card.memory_allocated
assert card.memory_stats_as_nested_dict()["allocated_bytes"]["all"]["current"] == 0
with card.amp.autocast():
    a = torch.ones(2, 2, device="widecard")
    assert (a @ a).dtype is torch.float16

message = raises(RuntimeError, torch.zeros, 2, dtype=torch.complex128, device="widecard")
assert "Testcard 1 (simulated) has no tensors of dtype torch.complex128" in message
raises(RuntimeError, torch.zeros(2, dtype=torch.float64, device="widecard").to, torch.complex128)

message = raises(torch.OutOfMemoryError, torch.empty, 1 << 45, device="widecard")
assert message.startswith("tcMalloc failed: TC7 out of memory") and "(simulated)" in message
assert faults.known() == ("illegal_access", "out_of_memory")
with faults.raised_next("illegal_access"):
    assert "TC9 bad address" in raises(RuntimeError, torch.ones, 2, device="widecard")
faults.raise_next(text="TC1 from synchronize")
assert "TC1" in raises(RuntimeError, torch.accelerator.synchronize)
with faults.raised_next("illegal_access"):
    pass
torch.ones(2, device="widecard").add_(1)
assert "out_of_memory" in raises(ValueError, faults.raise_next, "timeout")

adapter = adapter_module()
assert adapter.twice(torch.ones(1, device="widecard")).item() == 2
assert adapter.contrib.deep.count([1, 2]) == 2
assert adapter.widecard is card
assert raises(ImportError, __import__, "torch_wide")
print("done")
"""


def test_the_adapter_answers_as_its_plugin_says():
    done = run(WIDE, "--backend", "sim:wide", "--view", "native", WIDE_VISIBLE_DEVICES="0,1")
    assert done.stdout == "done\n"


NARROWED = """
import torch
from cuda_morph_sim import loader
loader.load_as("sim", lambda native: native.set_limits({}, {torch.float64: torch.float32,
    torch.int64: torch.int32}, "") or __import__("types").ModuleType("torch.sim"))
third = torch.tensor(1 / 3, dtype=torch.float64)
kept = third.to("sim")
assert kept.dtype is torch.float64
assert kept.item() == third.float().item() != third.item()
grown = torch.zeros(3, dtype=torch.float64, device="sim")
grown[1:] += 1 / 3
assert grown.tolist() == [0, third.float().item(), third.float().item()]
assert torch.full((2,), 2**40 + 5, device="sim").tolist() == [5, 5]
assert torch.linspace(0, 1, 4, dtype=torch.float64, device="sim").tolist() == torch.linspace(
    0, 1, 4, dtype=torch.float64).float().tolist()
print("done")
"""


def test_narrowed_dtypes_keep_their_name_and_lose_digits(python):
    assert python(NARROWED).stdout == "done\n"


IMPORTS = """
import sys, importlib.util, torch, cuda_morph
from cuda_morph.adapter import adapter_module
import torch_wide, torch_wide.contrib.deep
assert torch_wide is adapter_module()
assert torch_wide.__version__ == "1.2.3+simulated"
assert importlib.util.find_spec("torch_wide").origin == "simulated by cuda-morph-sim"
cuda_morph.deactivate()
assert importlib.util.find_spec("torch_wide") is None
assert "torch_wide" not in sys.modules
cuda_morph.activate("sim:wide")
import torch_wide.contrib
print("done")
"""


def test_imports_of_the_adapter_are_answered_on_request():
    done = run(IMPORTS, "--backend", "sim:wide", CUDA_MORPH_SIM_IMPORTS="1")
    assert done.stdout == "done\n"


def test_a_real_adapter_is_never_shadowed(tmp_path):
    (tmp_path / "torch_wide.py").write_text("real = True\n")
    paths = os.pathsep.join([str(SITE), str(tmp_path), os.environ.get("PYTHONPATH", "")])
    code = "import torch, torch_wide; print(torch_wide.real)"
    settings = {"PYTHONPATH": paths, "CUDA_MORPH_SIM_IMPORTS": "1"}
    assert run(code, "--backend", "sim:wide", **settings).stdout == "True\n"
    code = """
import torch_wide, cuda_morph
try:
    cuda_morph.activate("sim:wide")
except cuda_morph.errors.BackendUnavailableError as error:
    print("the real torch_wide is imported" in str(error))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "True\n", done.stderr


def test_children_inherit_the_simulation():
    code = """
import subprocess, sys, torch
child = "import torch; print(torch.ones(1, device='cuda').device, torch.cuda.device_count())"
print(subprocess.run([sys.executable, "-c", child], capture_output=True, text=True).stdout, end="")
"""
    settings = {"CUDA_VISIBLE_DEVICES": "0,1,2", "CUDA_MORPH_SIM_DEVICES": "4"}
    done = run(code, "--backend", "sim:wide", "--view", "native", **settings)
    assert done.stdout == "widecard:0 3\n"


def test_one_process_has_one_simulation():
    code = """
import cuda_morph
cuda_morph.activate("sim:wide")
cuda_morph.deactivate()
for other in ("sim:narrow", "sim"):
    try:
        cuda_morph.activate(other)
    except cuda_morph.errors.MorphError as error:
        print("'widecard'" in str(error))
cuda_morph.activate("sim:wide")
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": f"{SITE}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "True\nTrue\n"), done.stderr
