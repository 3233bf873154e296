"""Facts of the MetaX plugin that a typing error would change; what all plugins share is tested in
``tests/test_vendor_packages.py``."""

import pytest

from cuda_morph.torch_build import TorchBuild
from cuda_morph_metax import identity, plugin


@pytest.mark.parametrize(
    ("build", "right"),
    [
        (TorchBuild(version="2.10.0+metax3.8.0.7", cuda="11.6"), True),
        (TorchBuild(version="2.13.0+cu130", cuda="13.0"), False),
        (TorchBuild(version="2.10.0+rocm7.1", hip="7.1.25424"), False),
        (TorchBuild(version="2.13.0"), False),
    ],
)
def test_the_local_version_tells_the_build(build, right):
    assert (identity.wrong_build(build) == "") is right


def test_the_device_type_is_cudas_and_nothing_is_renamed():
    assert plugin.cuda_morph_backend().device_type == "cuda"
    assert all(record.replaces == (record.name,) for record in plugin.cuda_morph_collectives())


def test_numbers_that_differ_from_cuda_have_macas_meaning():
    codes = {row.code: row for row in plugin.cuda_morph_error_codes()}
    assert codes["912"].semantic == codes["913"].semantic == "graph_update"
    assert codes["220"].semantic == "hardware"


def test_codes_of_maca_alone_are_there():
    numbers = {int(row.code) for row in plugin.cuda_morph_error_codes()}
    assert {1003, 2002, 10000, 10032} <= numbers


def test_runtime_calls_differ_by_their_prefix():
    symbols = plugin.cuda_morph_extension_toolchain().symbol_map
    assert len(symbols) == 39
    assert symbols["cudaStreamCreate"] == "mcStreamCreate"
