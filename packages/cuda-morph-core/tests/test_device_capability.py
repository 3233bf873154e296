"""``torch.cuda.get_device_capability`` is a pair that can be compared, whatever the adapter says."""

import types

import pytest

from cuda_morph.device.accelerator import AcceleratorRuntime


@pytest.mark.parametrize(
    ("declared", "own", "expected"),
    [
        ((8, 0), (3, 1), (8, 0)),
        ((0, 0), (3, 1), (3, 1)),
        ((0, 0), None, (0, 0)),
        ((0, 0), {"fp64": True}, (0, 0)),
    ],
)
def test_the_plugin_declares_or_the_adapter_answers(declared, own, expected):
    module = types.SimpleNamespace(
        get_device_capability=lambda index: own,
        get_device_name=lambda index: "Chip",
        mem_get_info=lambda index: (1, 2),
        device_count=lambda: 1,
    )
    found = AcceleratorRuntime("mychip", module, declared).properties(0)
    assert (found.major, found.minor) == expected


def test_a_module_without_the_function_has_the_declared_pair():
    module = types.SimpleNamespace(get_device_name=str, mem_get_info=lambda index: (1, 2))
    found = AcceleratorRuntime("mychip", module).properties(0)
    assert (found.major, found.minor, found.name, found.total_memory) == (0, 0, "0", 2)
