"""Names that core refuses and an adapter has: the plugin's mapping brings them back."""

import os
import subprocess
import sys

import pytest
from fake_distributions import HEADER, FakeSite

ADAPTER = '''
class ChipGraph:
    """A captured graph."""

    def replay(self):
        return "replayed"


def chip_utilization(device=None):
    return 42 if device is None else device


limits = {}


def limit_memory(fraction, device=None):
    limits[device] = fraction


def few_arguments(callables, sample_args):
    return callables, sample_args
'''

PLUGIN = (
    HEADER
    + """
from cuda_morph_sim.loader import load

@hookimpl
def cuda_morph_backend():
    return Backend(name="mychip", display_name="MyChip", vendor="Test", device_type="sim",
                   adapter_module=None, simulated={simulated})

@hookimpl
def cuda_morph_detect():
    return Detection(available=True, device_count=2)

@hookimpl
def cuda_morph_device_mapping():
    return DeviceMapping(target="sim", module="torch.sim", init=lambda: load("sim"),
                         compute_capability=(8, 0))

@hookimpl
def cuda_morph_api_mappings():
    for name, target in (
        ("CUDAGraph", "chip_adapter.ChipGraph"),
        ("utilization", "chip_adapter.chip_utilization"),
        ("set_per_process_memory_fraction", "chip_adapter.limit_memory"),
        ("make_graphed_callables", "chip_adapter.few_arguments"),
        ("temperature", "chip_adapter.not_in_this_version"),
        ("power_draw", "no_such_module.power"),
    ):
        yield ApiMapping(name="torch.cuda." + name, treatment=Treatment.REDIRECT, target=target)
    yield ApiMapping(name="torch.cuda.clock_rate", treatment=Treatment.REFUSE, note="no clock")
"""
)

PROGRAM = """
import torch
from torch.cuda import utilization as early
import cuda_morph
from cuda_morph.errors import RefusedError

def refused(call):
    try:
        call()
    except RefusedError:
        return True
    return False

own_graph, own_code = torch.cuda.CUDAGraph, torch.cuda.utilization.__code__
with cuda_morph.activate("mychip") as activation:
    rows = {row.name: row for row in activation.rows}
    print("graph", torch.cuda.CUDAGraph.__name__, torch.cuda.graphs.CUDAGraph.__name__)
    print("utilization", refused(torch.cuda.utilization) or (early(), torch.cuda.utilization(1)))
    print("extra", refused(lambda: torch.cuda.make_graphed_callables(1, 2, 9)))
    print("same as default", refused(lambda: torch.cuda.make_graphed_callables(1, 2, 3)))
    torch.cuda.set_per_process_memory_fraction(0.5, 1)
    print("limit", __import__("chip_adapter").limits)
    print("absent", refused(torch.cuda.temperature), refused(torch.cuda.power_draw))
    print("refused", refused(torch.cuda.clock_rate))
    for name in ("CUDAGraph", "graphs.CUDAGraph", "utilization", "temperature",
                 "set_per_process_memory_fraction", "memory.set_per_process_memory_fraction"):
        print("row", name, rows["torch.cuda." + name].treatment.value)
print("back", torch.cuda.CUDAGraph is own_graph, torch.cuda.utilization.__code__ is own_code)
"""


def run(site: FakeSite, *, simulated: bool) -> list[str]:
    site.add("mychip", PLUGIN.replace("{simulated}", str(simulated)))
    (site.root / "chip_adapter.py").write_text(ADAPTER)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(site.root)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def site(fake_site: FakeSite) -> FakeSite:
    pytest.importorskip("cuda_morph_sim")
    return fake_site


def test_the_adapters_own_names_answer(site: FakeSite) -> None:
    assert run(site, simulated=False) == [
        "graph ChipGraph ChipGraph",
        "utilization (42, 1)",
        "extra True",
        "same as default False",
        "limit {1: 0.5}",
        "absent True True",
        "refused True",
        "row CUDAGraph redirect",
        "row graphs.CUDAGraph redirect",
        "row utilization redirect",
        "row temperature refuse",
        "row set_per_process_memory_fraction redirect",
        "row memory.set_per_process_memory_fraction redirect",
        "back True True",
    ]


def test_a_simulated_adapter_has_nothing_behind_them(site: FakeSite) -> None:
    lines = run(site, simulated=True)
    assert lines[0] == "graph CUDAGraph CUDAGraph"
    assert lines[1] == "utilization True"
    assert "limit {}" in lines
    assert "row CUDAGraph refuse" in lines
    assert "row set_per_process_memory_fraction stub" in lines
