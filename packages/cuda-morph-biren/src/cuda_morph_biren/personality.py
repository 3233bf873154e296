"""How a simulated device answers in place of torch_supa.

For running out of memory the text begins as that of the adapter's allocator. Which sentence it puts
around other errors is not known: those texts are name and meaning of the error table. Numbers of a
card are not known and 0.
"""

from __future__ import annotations

from pathlib import Path

from cuda_morph.record_files import read_error_texts
from cuda_morph.records import Personality

DATA = Path(__file__).with_name("data")

RAISED = (
    "suErrorNoDevice",
    "suErrorInvalidValue",
    "suErrorAssert",
)
"""One code of each class of failure that a program can be made to meet."""

PERSONALITY = Personality(
    device_name="Biren BR2xx",
    properties={"name": "Biren BR2xx", "total_memory": 0, "major": 0, "minor": 0},
    capability=(0, 0),
    absent_dtypes=("float64", "quint8", "quint4x2", "quint2x4", "qint8", "qint32"),
    error_texts={
        **read_error_texts(DATA / "error_codes.json", RAISED),
        "out_of_memory": "SUPA out of memory. Tried to allocate more than is free.",
    },
    source="torch_supa 1.0.0; BIRENSUPA programming guide, section suError_t",
)
