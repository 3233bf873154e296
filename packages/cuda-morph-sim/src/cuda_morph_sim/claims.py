"""What the simulated device claims: capabilities and dtypes."""

from __future__ import annotations

from cuda_morph.records import CapabilityClaim, DtypeSupport, Support

CAPABILITIES: tuple[CapabilityClaim, ...] = ()

DTYPES: tuple[DtypeSupport, ...] = tuple(
    DtypeSupport(dtype=name, support=Support.FULL)
    for name in (
        "bool",
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    )
)
