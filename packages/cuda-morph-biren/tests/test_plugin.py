"""Facts of the Biren plugin that a typing error would change; what all plugins share is tested in
``tests/test_vendor_packages.py``."""

import importlib
import sys

import pytest

from cuda_morph.records import ErrorCode, Support, Treatment
from cuda_morph_biren import identity, plugin


@pytest.mark.parametrize(
    ("adapter", "torch"),
    [
        ("1.0.0.21200", "2.12"),
        ("1.0.0.21000+br2xx-cp310", "2.10"),
        ("1.10.0.20900+br1xx", "2.9"),
        ("1.0.0", None),
    ],
)
def test_the_adapter_names_its_torch(adapter, torch):
    assert identity.required_torch(adapter) == torch


def test_the_version_matrix_agrees_with_the_rule():
    for row in plugin.cuda_morph_version_matrix():
        assert row.torch == f"{identity.required_torch(row.adapter)}.0"


def test_the_adapter_of_the_older_cards_is_found(tmp_path, monkeypatch):
    assert plugin.cuda_morph_backend().adapter_module == "torch_supa"
    (tmp_path / "torch_br.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    backend = plugin.cuda_morph_backend()
    assert (backend.adapter_module, backend.runtime_requires) == ("torch_br", ("torch_br",))
    assert "torch_br" not in sys.modules


def test_double_precision_is_replaced_with_a_notice():
    rows = {row.dtype: row for row in plugin.cuda_morph_dtypes()}
    assert rows["float64"].support is Support.NEVER
    assert rows["float64"].substitute == "float32"
    assert "float64" in plugin.cuda_morph_personality().absent_dtypes


def test_only_the_printed_codes_are_there():
    rows = plugin.cuda_morph_error_codes()
    codes = {row.code: row.semantic for row in rows if isinstance(row, ErrorCode)}
    assert codes["2"] == "out_of_memory"
    assert codes["710"] == "assertion"
    assert "700" not in codes


def test_names_are_paired_as_the_documents_have_them():
    rows = {row.name: row for row in plugin.cuda_morph_api_mappings()}
    redirected = [row for row in rows.values() if row.treatment is Treatment.REDIRECT]
    assert len(redirected) == 96
    assert rows["torch.cuda.nccl"].target == "torch.supa.bccl"
