"""Facts of the Moore Threads plugin that a typing error would change; what all plugins share is
tested in ``tests/test_vendor_packages.py``."""

from collections import Counter

import pytest

from cuda_morph.adapter_detection import version_fits
from cuda_morph.records import ErrorCode, Treatment
from cuda_morph_musa import identity, plugin


@pytest.fixture(scope="module")
def codes():
    return [row for row in plugin.cuda_morph_error_codes() if isinstance(row, ErrorCode)]


def test_the_families_are_complete(codes):
    families = Counter(row.family for row in codes)
    assert sorted(families.values()) == [4, 18, 124]


def test_a_code_without_a_number_is_its_name(codes):
    unnumbered = [row for row in codes if row.family.startswith("MCCL")]
    assert all(row.code == row.name for row in unnumbered)


@pytest.mark.parametrize(
    ("code", "semantics"),
    [
        ("2", {"out_of_memory"}),
        ("700", {"illegal_access"}),
        ("710", {"assertion"}),
        ("100", {"no_device"}),
    ],
)
def test_numbers_are_cudas(codes, code, semantics):
    assert {row.semantic for row in codes if row.code == code} == semantics


@pytest.mark.parametrize(
    ("torch", "fits"), [("2.7.1", True), ("2.8.0+cpu", True), ("2.7.0", False), ("2.6.0", False)]
)
def test_an_older_pytorch_is_refused_and_a_newer_one_is_not(torch, fits):
    assert version_fits(identity.required_torch("2.7.1"), torch) is fits


def test_no_requirement_is_read_from_an_unknown_version():
    assert identity.required_torch("nightly") is None


def test_the_symbol_table_is_complete():
    symbols = plugin.cuda_morph_extension_toolchain().symbol_map
    assert len(symbols) == 3361
    assert symbols["cudaMalloc"] == "musaMalloc"
    assert symbols["cuCtxCreate"] == "muCtxCreate"


def test_names_are_paired_as_the_source_has_them():
    rows = {row.name: row for row in plugin.cuda_morph_api_mappings()}
    redirected = [row for row in rows.values() if row.treatment is Treatment.REDIRECT]
    assert len(redirected) == 65
    assert rows["torch.cuda.graphs"].target == "torch.musa.musa_graph"
    assert rows["torch.cuda.init"].treatment is not Treatment.REDIRECT


def test_contradicting_variables_are_reported(monkeypatch):
    [check] = [one for one in plugin.cuda_morph_health_checks() if one.id == "musa.visible"]
    monkeypatch.setenv("MUSA_VISIBLE_DEVICES", "0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert check.run().ok
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert check.run().ok is False
