"""Facts of the Intel plugin that a typing error would change; what all plugins share is tested in
``tests/test_vendor_packages.py``."""

import re
from collections import Counter

import pytest

from cuda_morph.records import ErrorCode, ErrorRule, Treatment
from cuda_morph.torch_build import TorchBuild
from cuda_morph_xpu import identity, plugin


def test_the_families_are_complete():
    codes = [row for row in plugin.cuda_morph_error_codes() if isinstance(row, ErrorCode)]
    families = Counter(row.family.partition(" ")[0] for row in codes)
    assert families == {"Level": 62, "Unified": 72, "SYCL": 15}


def test_names_hold_where_numbers_moved():
    rules = [row for row in plugin.cuda_morph_error_codes() if isinstance(row, ErrorRule)]
    text = "level_zero backend failed with error: 40 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)"
    assert [rule.semantic for rule in rules if re.search(rule.pattern, text)] == ["out_of_memory"]


@pytest.mark.parametrize(
    ("build", "right"),
    [
        (TorchBuild(version="2.13.0+xpu", xpu="20250302"), True),
        (TorchBuild(version="2.13.0+cpu"), False),
    ],
)
def test_the_build_is_told(build, right):
    assert (identity.wrong_build(build) == "") is right


def test_the_surface_is_that_of_the_installed_pytorch():
    torch = pytest.importorskip("torch")
    names = [item.name for item in plugin.cuda_morph_surface().names if "." not in item.name]
    missing = [name for name in names if not hasattr(torch.xpu, name)]
    assert missing == []


def test_names_are_paired_as_pytorch_has_them():
    torch = pytest.importorskip("torch")
    rows = list(plugin.cuda_morph_api_mappings())
    redirected = [row for row in rows if row.treatment is Treatment.REDIRECT]
    assert len(redirected) == 66
    for row in redirected:
        assert hasattr(torch.xpu, row.target.removeprefix("torch.xpu.")), row


@pytest.mark.parametrize(("setting", "ok"), [("0,1", True), ("0.0", False), ("1,0", True)])
def test_visible_devices_are_judged_as_pytorch_reads_them(monkeypatch, setting, ok):
    monkeypatch.setenv("ZE_AFFINITY_MASK", setting)
    [check] = [one for one in plugin.cuda_morph_health_checks() if one.id == "xpu.visible"]
    assert check.run().ok is ok
