"""Each check must fail for a plugin that breaks its sentence; otherwise it proves nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_morph_conformance.checks import load_all
from cuda_morph_conformance.registry import CHECKS
from cuda_morph_conformance.runner import run_checks
from cuda_morph_conformance.vocabulary import Level, Seen

load_all()
LOADS = [check.id for check in CHECKS.values() if check.level is Level.LOADS]
GOOD = Path(__file__).with_name("good_plugin.py").read_text()

HOOK = """
from cuda_morph.hookspecs import hookimpl
from cuda_morph import records

@hookimpl
def {name}({arguments}):
    {body}
"""


def with_hook(name, body, arguments=""):
    return GOOD + HOOK.format(name=name, arguments=arguments, body=body)


def changed(old, new):
    assert old in GOOD
    return GOOD.replace(old, new)


ON_THE_CPU = """
from cuda_morph.hookspecs import hookimpl
from cuda_morph.records import Backend, CollectiveBackend, Detection, DeviceMapping

@hookimpl
def cuda_morph_backend():
    return Backend(name="mychip", display_name="MyChip", vendor="MyChip Inc.", device_type="cpu",
                   adapter_module=None, collective_backend="gloo")

@hookimpl
def cuda_morph_detect():
    return Detection(available=True, device_count=1)

@hookimpl
def cuda_morph_collectives():
    yield CollectiveBackend(name="gloo", device_types=("cpu",))

@hookimpl
def cuda_morph_device_mapping():
    return DeviceMapping(target="cpu", runtime=start)

def start():
    import os, time, torch
    from cuda_morph.device.cpu import CpuRuntime
    {body}
    return CpuRuntime()
"""
"""A plugin that can be activated anywhere, with a line of its own at each activation."""

WRONG = {
    "CM-LOAD-005": (
        GOOD + "@hookimpl\ndef cuda_morph_colectives():\n    return ()\n",
        "colectives",
    ),
    "CM-LOAD-006": (changed('"MyChip Inc."', "None"), "broken"),
    "CM-LOAD-010": ("import numpy\n" + GOOD, "numpy"),
    "CM-LOAD-011": ("print('MyChip says hello')\n" + GOOD, "hello"),
    "CM-LOAD-012": ("import os\nos.environ['LEFT_BEHIND'] = '1'\n" + GOOD, "os.environ"),
    "CM-LOAD-020": (changed('name="mychip"', 'name="other"'), "'other'"),
    "CM-LOAD-021": (changed('device_type="mychip"', 'device_type="MyChip 2"'), "device_type"),
    "CM-LOAD-022": (changed("runtime_requires=", 'spec="99.0", runtime_requires='), "99.0"),
    "CM-LOAD-023": (changed('("torch-mychip>=1.0",)', '["torch-mychip>=1.0"]'), "runtime_requires"),
    "CM-LOAD-030": (changed("reason=f", "reason='' and f"), "without a reason"),
    "CM-LOAD-031": (changed("    try:", "    import time; time.sleep(5.5)\n    try:"), "it took"),
    "CM-LOAD-032": (changed("except Exception", "except ImportError"), "OSError"),
    "CM-LOAD-040": (
        with_hook(
            "cuda_morph_capabilities",
            "yield records.CapabilityClaim(id='stream.nonsense', support=records.Support.FULL)",
        ),
        "stream.nonsense",
    ),
    "CM-LOAD-041": (
        with_hook(
            "cuda_morph_api_mappings",
            "yield records.ApiMapping(name='torch.cuda.jiterator', treatment=records.Treatment.REFUSE)",
        ),
        "without a note",
    ),
    "CM-LOAD-042": (
        with_hook(
            "cuda_morph_error_codes",
            "yield records.ErrorRule(pattern='(', semantic='out_of_memory')",
        ),
        "unterminated",
    ),
    "CM-LOAD-043": (changed("torch-mychip>=1.0", "torch mychip 1"), "torch mychip 1"),
    "CM-LOAD-044": (ON_THE_CPU.format(body="pass").replace('(name="gloo"', '(name="mccl"'), "mccl"),
    "CM-LOAD-050": (ON_THE_CPU.format(body="raise OSError('no driver')"), "no driver"),
    "CM-LOAD-051": (ON_THE_CPU.format(body="torch.cuda.left_behind = object()"), "left_behind"),
    "CM-LOAD-052": (ON_THE_CPU.format(body="os.environ['X'] = str(time.time_ns())"), "os.environ"),
}
"""Source that breaks one sentence each, and what the failure must mention."""


@pytest.mark.parametrize("check_id", WRONG)
def test_the_check_fails_and_says_why(check_id, install):
    source, mention = WRONG[check_id]
    install(source)
    [result] = run_checks("mychip", [check_id])
    assert result.seen is Seen.FAILED, result
    assert mention in result.message


def test_the_plugin_on_the_cpu_is_otherwise_right(install):
    install(ON_THE_CPU.format(body="pass"))
    assert {result.seen for result in run_checks("mychip", LOADS)} == {Seen.PASSED}


def test_two_owners_of_one_name(install):
    install()
    install(dist="cuda-morph-rival")
    [once, listed] = run_checks("mychip", ["CM-LOAD-001", "CM-LOAD-006"])
    assert once.seen is Seen.FAILED
    assert "cuda-morph-mychip" in once.message
    assert "cuda-morph-rival" in once.message
    assert listed.seen is Seen.FAILED
    assert "conflict" in listed.message


@pytest.mark.parametrize(
    ("check_id", "requires", "mention"),
    [
        ("CM-LOAD-002", (), "does not depend"),
        ("CM-LOAD-002", ("cuda-morph-core>=0.10",), "no upper bound"),
        ("CM-LOAD-003", ("cuda-morph-core<0.11", "torch>=2.5"), "torch>=2.5"),
    ],
)
def test_wrong_dependencies(check_id, requires, mention, install):
    install(requires=requires)
    [result] = run_checks("mychip", [check_id])
    assert result.seen is Seen.FAILED
    assert mention in result.message


def test_an_entry_in_torch_backends(install):
    install(entry_points="[torch.backends]\nmychip = plugin_cuda_morph_mychip:missing\n")
    [result] = run_checks("mychip", ["CM-LOAD-004"])
    assert result.seen is Seen.FAILED
    assert "torch.backends" in result.message


def test_an_unmarked_hook(install):
    install(GOOD + "def cuda_morph_dtypes():\n    return ()\n")
    [result] = run_checks("mychip", ["CM-LOAD-005"])
    assert "not marked" in result.message


def test_an_adapter_that_is_imported_too_early(install):
    install("import email.mime\n" + changed('"torch_mychip"', '"email.mime"'))
    [result] = run_checks("mychip", ["CM-LOAD-010"])
    assert result.message == "imported: email.mime"


def test_a_slow_import(install):
    install("import time\ntime.sleep(1.2)\n" + GOOD)
    [result] = run_checks("mychip", ["CM-LOAD-011"])
    assert result.seen is Seen.FAILED
    assert "it took" in result.message


def test_every_check_has_a_plugin_that_fails_it():
    elsewhere = {"CM-LOAD-001", "CM-LOAD-002", "CM-LOAD-003", "CM-LOAD-004"}
    assert set(LOADS) == set(WRONG) | elsewhere
