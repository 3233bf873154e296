"""Faults of the package, of its records, and of what loading leaves behind."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fault import in_package, in_records

Hooks = dict[str, Callable[..., Any]]


@in_package("CM-LOAD-002")
def core_is_not_limited() -> dict[str, Any]:
    """Any later core is accepted."""
    return {"requires": ("cuda-morph-core>=0.10",)}


@in_package("CM-LOAD-003")
def torch_is_a_dependency() -> dict[str, Any]:
    """Installing it installs PyTorch from PyPI over the vendor's build."""
    return {"requires": ("cuda-morph-core<0.11,>=0.10", "torch>=2.5")}


@in_package("CM-LOAD-004")
def it_loads_with_torch() -> dict[str, Any]:
    """It has an entry point that PyTorch calls whenever it is imported."""
    return {"entry_points": "[torch.backends]\nwrong = plugin_cuda_morph_wrong:autoload\n"}


@in_package("CM-LOAD-010")
def the_adapter_is_imported_with_it() -> dict[str, Any]:
    """A library is imported at module level."""
    return {"before": "import numpy\n"}


@in_package("CM-LOAD-011")
def it_prints_when_imported() -> dict[str, Any]:
    """Its import prints a banner."""
    return {"before": "print('Wrong runtime 7.1 (c) Wrong Inc.')\n"}


@in_package("CM-LOAD-012")
def it_sets_variables_when_imported() -> dict[str, Any]:
    """Its import changes the environment of the process."""
    return {"before": "import os\nos.environ['WRONG_LOG_LEVEL'] = '3'\n"}


@in_records("CM-LOAD-021")
def the_vendor_has_no_name(hooks: Hooks) -> None:
    """The display name is empty."""
    _backend(hooks, display_name="")


@in_records("CM-LOAD-040")
def it_claims_what_nobody_knows(hooks: Hooks) -> None:
    """It claims a capability that is not in core's list."""
    from cuda_morph.records import CapabilityClaim, Support

    right = hooks["cuda_morph_capabilities"]
    more = CapabilityClaim(id="stream.turbo", support=Support.FULL)
    hooks["cuda_morph_capabilities"] = lambda: (*right(), more)


@in_records("CM-LOAD-041")
def it_refuses_without_a_reason(hooks: Hooks) -> None:
    """A CUDA name is refused without a reason."""
    from cuda_morph.records import ApiMapping, Treatment

    name = "torch.cuda.jiterator._create_jit_fn"
    row = ApiMapping(name=name, treatment=Treatment.REFUSE)
    hooks["cuda_morph_api_mappings"] = lambda: (row,)


@in_records("CM-LOAD-042")
def one_code_means_two_things(hooks: Hooks) -> None:
    """An error code is listed twice, with two meanings."""
    from cuda_morph.records import ErrorCode

    codes = [
        ErrorCode(
            code=207, name=f"WRONG_{word.upper()}", meaning=f"{word}.", semantic=semantic,
            family="wrong", source="the vendor's manual", remedy="Try again.",
        )
        for word, semantic in (("timeout", "timeout"), ("invalid", "invalid_argument"))
    ]  # fmt: skip
    hooks["cuda_morph_error_codes"] = lambda: codes


@in_records("CM-LOAD-043")
def its_requirement_is_no_requirement(hooks: Hooks) -> None:
    """What it needs at run time is written as a sentence."""
    _backend(hooks, runtime_requires=("wrong runtime, 7.1 or later",))


@in_records("CM-LOAD-052")
def activation_leaves_a_variable(hooks: Hooks) -> None:
    """Each activation writes its number into the environment."""
    _at_each_start(hooks, lambda: os.environ.update(WRONG_STARTS=str(next(_starts))))


@in_records("CM-LOAD-051")
def a_patch_is_not_taken_back(hooks: Hooks) -> None:
    """Each activation wraps a function of torch.serialization, which deactivation leaves wrapped."""

    def patch() -> None:
        import torch

        right = torch.serialization.normalize_storage_type

        def wrapped(kind: Any) -> Any:
            return right(kind)

        torch.serialization.normalize_storage_type = wrapped

    _at_each_start(hooks, patch)


@in_records("CM-REV-002")
def activations_leave_threads(hooks: Hooks) -> None:
    """Each activation starts a watcher of the device that never ends."""
    import threading

    def watch() -> None:
        threading.Thread(target=threading.Event().wait, daemon=True).start()

    _at_each_start(hooks, watch)


@in_records("CM-DEV-016")
def its_variable_of_visible_devices_is_unknown(hooks: Hooks) -> None:
    """It does not say which variable limits the visible devices."""
    _backend(hooks, visible_devices_env=None)


_starts = iter(range(1_000_000))


def _backend(hooks: Hooks, **fields: Any) -> None:
    right = hooks["cuda_morph_backend"]
    hooks["cuda_morph_backend"] = lambda: replace(right(), **fields)


def _at_each_start(hooks: Hooks, act: Callable[[], object]) -> None:
    right = hooks["cuda_morph_device_mapping"]

    def mapping() -> Any:
        made = right()

        def start() -> Any:
            device = made.init()
            act()
            return device

        return replace(made, init=start)

    hooks["cuda_morph_device_mapping"] = mapping
