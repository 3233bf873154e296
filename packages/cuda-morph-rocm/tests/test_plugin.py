"""Facts of the ROCm plugin that a typing error would change; what all plugins share is tested in
``tests/test_vendor_packages.py``."""

import re

import pytest

from cuda_morph.records import ErrorCode, ErrorRule
from cuda_morph.torch_build import TorchBuild
from cuda_morph_rocm import identity, plugin


@pytest.mark.parametrize(
    ("build", "right"),
    [
        (TorchBuild(version="2.10.0+rocm7.1", hip="7.1.25424"), True),
        (TorchBuild(version="2.13.0+cu130", cuda="13.0"), False),
        (TorchBuild(version="2.13.0+cpu"), False),
        (TorchBuild(version="2.10.0+metax3.8.0.7", cuda="11.6"), False),
    ],
)
def test_hip_tells_the_build(build, right):
    assert (identity.wrong_build(build) == "") is right


def test_the_device_type_is_cudas_and_nothing_is_renamed():
    assert plugin.cuda_morph_backend().device_type == "cuda"
    assert all(record.replaces == (record.name,) for record in plugin.cuda_morph_collectives())
    assert not hasattr(plugin, "cuda_morph_api_mappings")


def test_numbers_that_differ_from_cuda_have_hips_meaning():
    codes = {row.code: row for row in plugin.cuda_morph_error_codes() if isinstance(row, ErrorCode)}
    assert codes["911"].semantic == codes["912"].semantic == "texture"


def test_pytorchs_sentence_is_recognised():
    rules = [row for row in plugin.cuda_morph_error_codes() if isinstance(row, ErrorRule)]
    text = "HIP out of memory. Tried to allocate 20.00 GiB."
    assert [rule.semantic for rule in rules if re.search(rule.pattern, text)] == ["out_of_memory"]


def test_contradicting_variables_are_reported(monkeypatch):
    [check] = [one for one in plugin.cuda_morph_health_checks() if one.id == "rocm.visible"]
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert check.run().ok is False
