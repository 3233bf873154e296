"""How a simulated device answers in place of torch_musa.

For running out of memory the text begins as that of the adapter's allocator. Which sentence it puts
around other errors is not known: those texts are name and meaning of the error table. Numbers of a
card are not known and 0.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cuda_morph.record_files import read_error_texts
from cuda_morph.records import Personality

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DATA = Path(__file__).with_name("data")

RAISED = (
    "musaErrorNoDevice",
    "musaErrorInvalidDevice",
    "musaErrorInvalidValue",
    "musaErrorIllegalAddress",
    "musaErrorLaunchTimeout",
    "musaErrorAssert",
    "musaErrorLaunchFailure",
    "musaErrorECCUncorrectable",
    "musaErrorNotSupported",
)
"""One code of each class of failure that a program can be made to meet."""


def _functions() -> Mapping[str, Callable[..., object]]:
    from cuda_morph_musa import simulated_attention

    return simulated_attention.functions()


PERSONALITY = Personality(
    device_name="Moore Threads GPU",
    properties={"name": "Moore Threads GPU", "total_memory": 0, "major": 0, "minor": 0},
    capability=(0, 0),
    error_texts={
        **read_error_texts(DATA / "error_codes.json", RAISED),
        "out_of_memory": "MUSA out of memory. Tried to allocate more than is free.",
    },
    functions=_functions,
    source="torch_musa 2.7.1; enumeration musaError_t in the MUSA fork of ollama",
)
