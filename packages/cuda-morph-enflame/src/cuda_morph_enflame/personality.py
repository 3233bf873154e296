"""How a simulated device answers in place of torch_gcu.

For running out of memory the text begins as that of the adapter's allocator. Which sentence it puts
around other errors is not known: those texts are name and meaning of the error table. Numbers of a
card are not known and 0.
"""

from __future__ import annotations

from pathlib import Path

from cuda_morph.record_files import read_error_texts
from cuda_morph.records import Personality
from cuda_morph_enflame.identity import KEEP_INTEGERS

DATA = Path(__file__).with_name("data")

RAISED = (
    "topsErrorNoDevice",
    "topsErrorInvalidDevice",
    "topsErrorInvalidValue",
    "topsErrorIllegalAddress",
    "topsErrorLaunchTimeOut",
    "topsErrorAssert",
    "topsErrorLaunchFailure",
    "topsErrorECCNotCorrectable",
    "topsErrorNotSupported",
)
"""One code of each class of failure that a program can be made to meet."""

PERSONALITY = Personality(
    device_name="Enflame S60",
    properties={"name": "Enflame S60", "total_memory": 0, "major": 0, "minor": 0},
    capability=(0, 0),
    absent_dtypes=("quint8",),
    narrowed_dtypes={
        "float64": "float32",
        "int64": "int32",
        "uint64": "uint32",
        "complex128": "complex64",
    },
    widening_env={KEEP_INTEGERS: ("int64", "uint64")},
    error_texts={
        **read_error_texts(DATA / "error_codes.json", RAISED),
        "out_of_memory": "GCU out of memory. Tried to allocate more than is free.",
    },
    source="torch_gcu 2.10.0 (is_narrow_type); tops runtime header, topsError_t",
)
