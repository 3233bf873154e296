"""Facts of the Cambricon plugin that a typing error would change; what all plugins share is tested
in ``tests/test_vendor_packages.py``."""

import json
from collections import Counter

import pytest

from cuda_morph.records import ErrorCode, Treatment
from cuda_morph_cambricon import identity, plugin


@pytest.fixture(scope="module")
def codes():
    return [row for row in plugin.cuda_morph_error_codes() if isinstance(row, ErrorCode)]


def test_the_families_are_complete(codes):
    families = Counter(row.family.partition(" ")[0] for row in codes)
    assert families == {
        "CNRT": 41,
        "CNDrv": 65,
        "CNCL": 33,
        "mluopStatus_t": 9,
        "cnnlStatus_t": 8,
    }


def test_runtime_and_driver_agree_on_shared_numbers(codes):
    by_family = {
        family: {row.code: row.semantic for row in codes if row.family.startswith(family)}
        for family in ("CNRT", "CNDrv")
    }
    shared = set(by_family["CNRT"]) & set(by_family["CNDrv"])
    assert len(shared) > 20
    assert by_family["CNRT"]["100100"] == "out_of_memory"
    differing = {code for code in shared if by_family["CNRT"][code] != by_family["CNDrv"][code]}
    assert len(differing) < len(shared) / 4, differing


@pytest.mark.parametrize(
    ("adapter", "torch"),
    [("1.25.0+torch2.4.1", "2.4"), ("1.25.0-torch2.4.1", "2.4"), ("1.25.0", None)],
)
def test_the_adapter_names_its_torch(adapter, torch):
    assert identity.required_torch(adapter) == torch


def test_the_vendors_table_of_variables_is_complete():
    table = json.loads((plugin.DATA / "environment.json").read_text())["map"]
    assert len(table) == 39
    [record] = plugin.cuda_morph_collectives()
    # Those with a field in Backend, and those the vendor marks as unsupported, are left out.
    assert set(record.env_map) == {
        name for name, own in table.items() if own and name not in identity.OWN_FIELDS
    }
    assert record.env_map["NCCL_BLOCKING_WAIT"] == "TORCH_CNCL_BLOCKING_WAIT"
    assert "TORCH_NCCL_NAN_CHECK" not in record.env_map


def test_the_own_fields_agree_with_the_vendors_table():
    table = json.loads((plugin.DATA / "environment.json").read_text())["map"]
    backend = plugin.cuda_morph_backend()
    assert table["CUDA_VISIBLE_DEVICES"] == backend.visible_devices_env
    assert table["PYTORCH_CUDA_ALLOC_CONF"] == backend.alloc_conf_env
    assert (table["CUDA_LAUNCH_BLOCKING"] or None) == backend.launch_blocking_env


def test_collectives_have_no_double_precision():
    [record] = plugin.cuda_morph_collectives()
    assert "float32" in record.dtypes
    assert "float64" not in record.dtypes


def test_names_are_paired_as_the_source_has_them():
    rows = {row.name: row for row in plugin.cuda_morph_api_mappings()}
    redirected = [row for row in rows.values() if row.treatment is Treatment.REDIRECT]
    assert len(redirected) == 94
    assert rows["torch.cuda.nccl"].target == "torch.mlu.cncl"
    assert rows["torch.cuda.CudaError"].target == "torch.mlu.CnrtError"
