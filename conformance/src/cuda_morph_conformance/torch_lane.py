"""The optional lane: PyTorch's own operator and module databases, run device against CPU.

PyTorch ships its device-generic test machinery (`instantiate_device_type_tests`) and what its tests
are made of (`op_db`, `module_db`), not the tests themselves. This lane instantiates a small test
class over them for the plugin's device, as PyTorch does for its own backends. The machinery is
private to PyTorch, so the counts are recorded and nothing depends on them.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuda_morph_conformance.processes import isolated_command, isolated_environment
from cuda_morph_conformance.subject import Subject

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT = 900.0
"""Seconds that the lane may take."""

SAMPLES = 3
"""Inputs per operator: PyTorch has more, most of them alike."""

_NAMED = 20
"""How many failures are named in the certificate."""


def run_lane(plugin: str) -> dict[str, Any]:
    """Run the lane in a process of its own.

    Args:
        plugin: Entry-point name of the plugin.

    Returns:
        Counts of passed, failed and skipped, the first names that failed, and how it ended when it
        did not come to its end. All zero where it could not be started.
    """
    with tempfile.TemporaryDirectory(prefix="cuda-morph-lane-") as folder:
        journal = Path(folder, "journal.jsonl")
        journal.touch()
        work = Path(folder, "work")
        work.mkdir()
        command = isolated_command("cuda_morph_conformance.torch_lane", plugin, str(journal))
        environment = isolated_environment(Path(folder))
        ending = ""
        try:
            done = subprocess.run(
                command, cwd=work, env=environment, capture_output=True, timeout=LIMIT, check=False
            )
            if done.returncode:
                last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
                ending = f"ended with exit code {done.returncode}: {' '.join(last)[:300]}"
        except subprocess.TimeoutExpired:
            ending = f"did not end within {LIMIT:g} s"
        rows = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    seen = [row["seen"] for row in rows]
    return {
        **{name: seen.count(name) for name in ("passed", "failed", "skipped")},
        "first_failures": [row["name"] for row in rows if row["seen"] == "failed"][:_NAMED],
        "ending": ending,
    }


def main(plugin: str, journal: str) -> None:
    """Run the lane in this process.

    Args:
        plugin: Entry-point name of the plugin.
        journal: File that gets a line of JSON for each test.
    """
    subject = Subject(plugin)
    subject.need_device()
    with subject.activate() as activation, Path(journal).open("a", buffering=1) as file:
        suite = unittest.TestSuite(_tests(activation.backend.device_type))

        class Journal(unittest.TestResult):
            def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802 - unittest's name
                super().stopTest(test)
                bad = {id(one) for one, _ in (*self.failures, *self.errors)}
                skipped = {id(one) for one, _ in self.skipped}
                seen = "failed" if id(test) in bad else "passed"
                seen = "skipped" if id(test) in skipped else seen
                file.write(json.dumps({"name": test.id().rpartition(".")[2], "seen": seen}) + "\n")

        suite.run(Journal())


def _tests(device_type: str) -> Iterator[Any]:
    """Makes PyTorch's device-generic tests for one device type."""
    import torch
    from torch.testing._internal.common_device_type import instantiate_device_type_tests, ops
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.common_modules import module_db, modules
    from torch.testing._internal.common_utils import TestCase

    class TestAgainstCpu(TestCase):  # type: ignore[misc]
        @ops(op_db, allowed_dtypes=(torch.float32, torch.int64))  # type: ignore[untyped-decorator]
        def test_operator(self, device: str, dtype: Any, op: Any) -> None:
            compare_operator(self, device, dtype, op)

        @modules(module_db, allowed_dtypes=(torch.float32,))  # type: ignore[untyped-decorator]
        def test_module(self, device: str, dtype: Any, module_info: Any, training: bool) -> None:
            compare_module(self, device, dtype, module_info, training=training)

    scope: dict[str, Any] = {"TestAgainstCpu": TestAgainstCpu}
    instantiate_device_type_tests(TestAgainstCpu, scope, only_for=(device_type,), allow_xpu=True)
    for made in scope.values():
        yield from unittest.defaultTestLoader.loadTestsFromTestCase(made)


def compare_operator(test: Any, device: str, dtype: Any, op: Any) -> None:
    """Compare an operator on the device with the same on the CPU.

    Args:
        test: The running test case.
        device: The device, as PyTorch's machinery names it.
        dtype: The element type.
        op: An entry of PyTorch's operator database.
    """
    import itertools

    import torch

    if _is_random(op.name):
        test.skipTest("its result is not determined")
    if op.name in _KEPT_AS_MADE:
        test.skipTest("its inputs lose their meaning when they are copied to a device")
    for sample in itertools.islice(op.sample_inputs("cpu", dtype), SAMPLES):
        expected = op(sample.input, *sample.args, **sample.kwargs)
        moved = sample.transform(
            lambda value: value.to(device) if isinstance(value, torch.Tensor) else value
        )
        actual = op(moved.input, *moved.args, **moved.kwargs)
        _assert_close(actual, expected)


def compare_module(test: Any, device: str, dtype: Any, info: Any, *, training: bool) -> None:
    """Compare a module's forward pass on the device with the same on the CPU.

    Args:
        test: The running test case.
        device: The device.
        dtype: The element type.
        info: An entry of PyTorch's module database.
        training: The mode of the module.
    """
    import copy
    import itertools

    import torch
    from torch.utils import _pytree as tree

    if "Lazy" in info.name or (training and "Dropout" in info.name):
        test.skipTest("its result is not determined")
    inputs = info.module_inputs_func(
        info, device="cpu", dtype=dtype, requires_grad=False, training=training
    )
    for item in itertools.islice(inputs, SAMPLES):
        if item.forward_input is None:
            continue
        made = item.constructor_input
        module = info.module_cls(*made.args, **made.kwargs).to(dtype).train(training)
        given = (item.forward_input.args, item.forward_input.kwargs)
        remote, there = copy.deepcopy((module, given))
        expected = module(*given[0], **given[1])
        args, kwargs = tree.tree_map_only(torch.Tensor, lambda value: value.to(device), there)
        actual = remote.to(device)(*args, **kwargs)
        _assert_close(actual, expected)


def _assert_close(actual: Any, expected: Any) -> None:
    import torch

    torch.testing.assert_close(
        actual, expected, check_device=False, equal_nan=True, atol=1e-3, rtol=1e-3
    )


_KEPT_AS_MADE = frozenset({"as_strided", "as_strided_scatter", "tensor_split"})
"""Operators whose inputs are views of a larger tensor, or indices that have to be on the CPU."""


def _is_random(name: str) -> bool:
    words = ("rand", "normal", "dropout", "bernoulli", "multinomial", "exponential", "cauchy")
    more = ("geometric", "uniform", "empty", "new_empty", "rrelu", "fractional_max_pool", "svd")
    return any(word in name for word in (*words, *more, "lowrank", "eig", "qr"))
