"""Patterns of CUDA in text: device strings, variables, libraries, and the cheap first look."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

DEVICE = re.compile(r"cuda(?::\d+)?", re.IGNORECASE)
"""A whole device string."""

DEVICE_START = re.compile(r"cuda:?")
"""What a device string that is put together begins with."""

BACKEND = re.compile(r"nccl|(?:\w+:\w+,)*cuda:nccl(?:,\w+:\w+)*", re.IGNORECASE)
"""A collective backend, alone or by device type."""

LEGACY_TYPE = re.compile(r"torch\.cuda(?:\.sparse)?\.\w+(?:Tensor|Storage)")

VARIABLE = re.compile(
    r"(?:PYTORCH_)?CUDA_[A-Z0-9_]+|(?:TORCH_)?NCCL_[A-Z0-9_]+|CUBLAS_[A-Z0-9_]+|CUDNN_[A-Z0-9_]+"
    r"|NVIDIA_[A-Z0-9_]+|PYTORCH_NO_CUDA_[A-Z0-9_]+|PYTORCH_NVML_[A-Z0-9_]+"
    r"|TORCH_CUDA_[A-Z0-9_]+|TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"
)
"""The whole name of an environment variable."""

CUDA_LIBRARY = re.compile(
    r"(?:.*[/\\])?(?:lib)?(?:cudart|cuda|cublas(?:Lt)?|cudnn|cufft|curand|cusparse|cusolver|nccl"
    r"|nvrtc|nvToolsExt|nvidia-ml|nvml)(?:64)?(?:[._-]?\d+)*(?:\.(?:so|dll|dylib)(?:\.\d+)*)?"
)
"""The whole name of a shared library of CUDA."""

TOOL = re.compile(r"(?:\S*/)?(nvidia-smi|nvcc|nsys|ncu|nvprof|cuda-gdb|nvidia-cuda-mps-control)\b")

LIBRARIES: dict[str, str] = {
    "flash_attn": "CM401",
    "triton": "CM402",
    "bitsandbytes": "CM403",
    "apex": "CM404",
    "xformers": "CM405",
    "cupy": "CM406",
    "cupyx": "CM406",
    "pycuda": "CM406",
    "numba.cuda": "CM406",
    "cudf": "CM406",
    "cuml": "CM406",
    "cugraph": "CM406",
    "cuda": "CM406",
    "pynvml": "CM407",
    "nvidia_smi": "CM407",
    "py3nvml": "CM407",
    "tensorrt": "CM407",
    "torch_tensorrt": "CM407",
    "tensorrt_llm": "CM407",
    "transformer_engine": "CM407",
    "nvidia": "CM407",
}
"""Import name of a library to the rule it falls under."""

WORDS = (
    "cuda",
    "nccl",
    "cudnn",
    "cublas",
    "flash_attn",
    "triton",
    "bitsandbytes",
    "apex",
    "xformers",
    "cupy",
    "cudf",
    "cuml",
    "cugraph",
    "nvml",
    "nvidia",
    "nvcc",
    "nsys",
    "nvrtc",
    "nvtools",
    "tensorrt",
    "transformer_engine",
    "curand",
    "cufft",
    "cusolver",
    "cusparse",
    "+cu",
    "whl/cu",
)
"""A file without any of these, in whatever case, and without `PATTERNS` has no finding."""

PATTERNS = (re.compile(r"\.to\(\s*\d"), re.compile(r"device\s*=\s*\d"), re.compile(r"\.cuh?[\"']"))
"""Integers as devices, CUDA sources. Each begins with a literal, which is searched for fast."""


def mentions(text: str) -> Iterator[int]:
    """Yields the offsets in a text that are worth a closer look, in no order.

    Args:
        text: Any text; most end here, so this is a plain search for a few words.
    """
    lowered = text.lower()
    if len(lowered) != len(text):  # a few capitals of other alphabets have longer small letters
        lowered = text
    for word in WORDS:
        at = lowered.find(word)
        while at >= 0:
            yield at
            at = lowered.find(word, at + len(word))
    for pattern in PATTERNS:
        for match in pattern.finditer(text):
            yield match.start()


def library_rule(module: str) -> str | None:
    """Returns the rule of an imported module, or ``None``.

    Args:
        module: Qualified name, such as ``flash_attn.bert_padding`` or ``numba.cuda.jit``.
    """
    parts = module.split(".")
    for length in (2, 1):
        rule = LIBRARIES.get(".".join(parts[:length]))
        if rule:
            return rule
    return None


def variable_rule(name: str) -> str:
    """Returns the rule of an environment variable that `VARIABLE` matches."""
    if name in {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"}:
        return "CM701"
    if name == "PYTORCH_CUDA_ALLOC_CONF":
        return "CM702"
    if name == "CUDA_LAUNCH_BLOCKING":
        return "CM703"
    return "CM705" if "NCCL" in name else "CM704"
