"""Facts of the Ascend plugin that a typing error would change; what all plugins share is tested
in ``tests/test_vendor_packages.py``."""

import re

import pytest

from cuda_morph.plugins import PluginStatus, examine
from cuda_morph.records import ErrorCode, ErrorRule, Support, Treatment
from cuda_morph_ascend import identity, plugin


@pytest.fixture(scope="module")
def codes():
    return [row for row in plugin.cuda_morph_error_codes() if isinstance(row, ErrorCode)]


def test_the_plugin_keeps_the_contract():
    row = examine(plugin, name="ascend", torch_version="2.13.0")
    assert row.status in {PluginStatus.READY, PluginStatus.UNAVAILABLE}, row.reason
    assert row.notes == ()


def test_every_error_code_is_there(codes):
    assert len(codes) == 555
    assert sum(row.code.startswith("ERR") for row in codes) == 76


@pytest.mark.parametrize(
    ("code", "semantic"),
    [
        ("207001", "out_of_memory"),
        ("207018", "out_of_memory"),
        ("507014", "timeout"),
        ("507035", "launch"),
        ("507054", "hardware"),
        ("507010", "device_lost"),
        ("107001", "invalid_device"),
        ("207004", "no_device"),
        ("107027", "graph_capture"),
        ("EI0002", "timeout"),
        ("EI0005", "collective_usage"),
        ("EI0006", "timeout"),
        ("ERR02011", "timeout"),
        ("ERR00100", "unknown"),
        ("EE1013", "host_out_of_memory"),
    ],
)
def test_codes_have_the_class_of_their_meaning(codes, code, semantic):
    assert [row.semantic for row in codes if row.code == code] == [semantic]


@pytest.mark.parametrize(
    ("text", "semantic"),
    [
        ("rtDeviceSynchronize failed, reason=[hbm Multi-bit ECC error]", "hardware"),
        ("reason=[suspect remote error]", "collective_remote"),
        ("[PID: 12] 2026\nE19999 Inner Error!", "internal"),
        ("everything is well", None),
    ],
)
def test_texts_are_recognised(text, semantic):
    rules = [row for row in plugin.cuda_morph_error_codes() if isinstance(row, ErrorRule)]
    found = [rule.semantic for rule in rules if re.search(rule.pattern, text)]
    assert found == ([semantic] if semantic else [])


@pytest.mark.parametrize(
    ("adapter", "torch"),
    [("2.13.0", "2.13"), ("2.10.0.post4", "2.10"), ("2.1.0.post17", "2.1"), ("nightly", None)],
)
def test_the_adapter_names_its_torch(adapter, torch):
    assert identity.required_torch(adapter) == torch


def test_the_version_matrix_agrees_with_the_rule():
    for row in plugin.cuda_morph_version_matrix():
        assert row.torch.startswith(f"{identity.required_torch(row.adapter)}.")


@pytest.mark.parametrize(
    ("text", "pair"), [("8.0", (8, 0)), (" 9.0 ", (9, 0)), ("eight", (0, 0)), ("8", (0, 0))]
)
def test_the_capability_is_always_a_pair(monkeypatch, text, pair):
    monkeypatch.setenv(identity.CAPABILITY_VARIABLE, text)
    assert plugin.cuda_morph_device_mapping().compute_capability == pair
    monkeypatch.delenv(identity.CAPABILITY_VARIABLE)
    assert plugin.cuda_morph_device_mapping().compute_capability == (0, 0)


def test_names_are_paired_as_the_wheel_has_them():
    rows = {row.name: row for row in plugin.cuda_morph_api_mappings()}
    redirected = [row for row in rows.values() if row.treatment is Treatment.REDIRECT]
    same = [row for row in redirected if row.target == row.name.replace("cuda", "npu", 1)]
    assert (len(rows), len(redirected), len(same)) == (131, 98, 94)
    assert rows["torch.cuda.CUDAGraph"].target == "torch.npu.NPUGraph"
    assert rows["torch.cuda.nvtx"].target == "torch.npu.mstx"


def test_the_surface_has_the_adapters_parameters():
    names = {item.name: item for item in plugin.cuda_morph_surface().names}
    assert names["can_device_access_peer"].parameters == ("device_id", "peer_device_id")
    assert names["get_device_properties"].parameters == ("device_name",)
    assert "Stream.wait_event" in names
    assert "jiterator" not in names


def test_claims_that_the_vendor_denies_are_not_made():
    claims = {claim.id: claim.support for claim in plugin.cuda_morph_capabilities()}
    assert claims["autograd.transforms"] is Support.NOT_YET
    assert claims["io.dlpack"] is Support.NOT_YET


@pytest.mark.parametrize(
    ("setting", "ok"), [("0,1,3", True), ("1,0", False), ("0,0", False), ("a", False), ("", True)]
)
def test_visible_devices_are_judged_as_the_runtime_reads_them(monkeypatch, setting, ok):
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", setting)
    [check] = [one for one in plugin.cuda_morph_health_checks() if one.id == "ascend.visible"]
    assert check.run().ok is ok


def test_two_allocator_variables_are_reported(monkeypatch):
    [check] = [one for one in plugin.cuda_morph_health_checks() if one.id == "ascend.allocator"]
    monkeypatch.delenv("PYTORCH_ALLOC_CONF", raising=False)
    monkeypatch.setenv("PYTORCH_NPU_ALLOC_CONF", "max_split_size_mb:64")
    assert check.run().ok
    monkeypatch.setenv("PYTORCH_ALLOC_CONF", "max_split_size_mb:64")
    assert check.run().ok is False
