"""The Ascend C frame: the published alignment counts, and what is not published is a blank."""

import json

import pytest

from cuda_morph.errors import SettingError
from cuda_morph.scaffolding.operator_project import operator_files
from cuda_morph.scaffolding.operator_spec import example
from cuda_morph.scaffolding.operator_targets import find_target


def test_the_frame():
    target = find_target("ascendc")
    files = operator_files(example("my_op", "elementwise"), target)
    assert set(files) == {"README.md", "op_kernel/my_op.cpp", "spec.json"}
    kernel = files["op_kernel/my_op.cpp"]
    assert "kAlignment = 32;" in kernel
    assert "hiascend.com" in kernel
    assert kernel.count("BLANK") >= 3
    assert "GM_ADDR x_gm," in kernel
    assert json.loads(files["spec.json"])["alignment"] == 32


def test_what_cannot_be_aligned_is_refused():
    content = example("my_op", "elementwise")
    for tensor in (*content["inputs"], *content["outputs"]):
        tensor["shape"] = [12]
    with pytest.raises(SettingError, match="48 bytes, no multiple of 32"):
        operator_files(content, find_target("ascendc"))


def test_kinds_and_types_without_a_published_source_are_refused():
    with pytest.raises(SettingError, match="no template for the kind 'matmul'"):
        operator_files(example("my_op", "matmul"), find_target("ascendc"))
