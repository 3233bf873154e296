"""Facts of the Enflame plugin that a typing error would change; what all plugins share is tested in
``tests/test_vendor_packages.py``."""

import os
import subprocess
import sys

import pytest

from cuda_morph.records import ErrorCode, Support, Treatment
from cuda_morph_enflame import identity, plugin


def test_second_names_of_a_number_mean_the_same():
    codes = [row for row in plugin.cuda_morph_error_codes() if isinstance(row, ErrorCode)]
    names = [row.name for row in codes if row.code == "2"]
    assert sorted(names) == ["topsErrorMemoryAllocation", "topsErrorOutOfMemory"]


def test_silently_narrowed_types_are_named():
    personality = plugin.cuda_morph_personality()
    assert personality.narrowed_dtypes == {
        "float64": "float32",
        "int64": "int32",
        "uint64": "uint32",
        "complex128": "complex64",
    }
    rows = {row.dtype: row for row in plugin.cuda_morph_dtypes()}
    for dtype in personality.narrowed_dtypes:
        assert rows[dtype].support is Support.PARTIAL
        assert "32 bits" in rows[dtype].note
        # The adapter does it by itself: a stand-in would change the type that programs see.
        assert rows[dtype].substitute is None


def test_integers_keep_64_bits_unless_the_user_says_otherwise():
    program = (
        "import cuda_morph; cuda_morph.activate('sim:enflame'); import torch\n"
        "print(torch.tensor([2**40 + 1], device='cuda').item() == 2**40 + 1)"
    )
    for own, kept in (({}, "True"), ({identity.KEEP_INTEGERS: "false"}, "False")):
        environment = {k: v for k, v in os.environ.items() if k != identity.KEEP_INTEGERS}
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**environment, **own},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.split() == [kept]


def test_training_on_a_card_for_inference_is_claimed_in_part_only():
    claims = {claim.id: claim for claim in plugin.cuda_morph_capabilities()}
    assert claims["autograd.backward"].support is Support.PARTIAL
    assert "inference" in claims["autograd.backward"].note


@pytest.mark.parametrize(
    ("setting", "ok"),
    [
        ("0,1", True),
        ("GCU-1234,1", True),
        ("0,0", False),
        ("0,-1", False),
        ("1x,2", True),
        ("x", False),
    ],
)
def test_visible_devices_are_judged_as_the_runtime_reads_them(monkeypatch, setting, ok):
    monkeypatch.setenv("TOPS_VISIBLE_DEVICES", setting)
    [check] = [one for one in plugin.cuda_morph_health_checks() if one.id == "enflame.visible"]
    assert check.run().ok is ok


def test_the_adapter_names_its_torch():
    assert identity.required_torch("2.10.0+3.7.107") == "2.10"
    assert identity.required_torch("unknown") is None


def test_names_are_paired_as_the_source_has_them():
    rows = {row.name: row for row in plugin.cuda_morph_api_mappings()}
    redirected = [row for row in rows.values() if row.treatment is Treatment.REDIRECT]
    assert len(redirected) == 98
    assert rows["torch.cuda.nvtx"].target == "torch.gcu.topstx"
