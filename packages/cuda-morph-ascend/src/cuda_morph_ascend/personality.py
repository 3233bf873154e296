"""How a simulated device answers in place of torch_npu.

Numbers of a card that are not published here are 0. Error texts have the published shape, with an
entry of the error table filled in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuda_morph.records import Personality

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def _error(api: str, code: int, text: str) -> str:
    return (
        f"{api}: NPU function error: {api}, error code is {code}\n"
        f"[ERROR] ERR00100 PTA call acl api failed\n[Error]: {text}."
    )


def _functions() -> Mapping[str, Callable[..., object]]:
    from cuda_morph_ascend import simulated_attention

    return simulated_attention.functions()


PERSONALITY = Personality(
    device_name="Ascend910B1",
    properties={
        "name": "Ascend910B1",
        "total_memory": 0,
        "L2_cache_size": 0,
        "cube_core_num": 0,
        "vector_core_num": 0,
    },
    capability=None,
    absent_dtypes=("quint8", "quint4x2", "quint2x4", "qint8", "qint32"),
    error_texts={
        "out_of_memory": "NPU out of memory. Tried to allocate more than is free.",
        "no_device": _error("aclrtGetDeviceCount", 207004, "no device"),
        "invalid_device": _error("aclrtSetDevice", 107001, "invalid device id"),
        "invalid_argument": _error("aclrtMemcpyAsync", 107000, "param invalid"),
        "timeout": _error("aclrtSynchronizeStream", 507014, "aicore timeout"),
        "launch": _error("aclrtSynchronizeStream", 507015, "aicore exception"),
        "illegal_access": _error("aclrtSynchronizeStream", 507042, "aic trap read overflow"),
        "hardware": _error("aclrtSynchronizeStream", 507054, "hbm Multi-bit ECC error"),
        "device_lost": _error("aclrtSynchronizeDevice", 507010, "ts lost heartbeat"),
        "unsupported": _error("aclrtMalloc", 207000, "feature not support"),
        "collective_remote": _error("aclrtSynchronizeStream", 507057, "suspect remote ERROR"),
    },
    functions=_functions,
    source="torch_npu 2.13.0 (NPUException.h, NpuVariables.cpp, rt_error_codes.h); "
    "Ascend/pytorch torch-cuda.md for the fields of the properties",
)
