"""The rule that a qualified name of PyTorch falls under."""

from __future__ import annotations

import re
from functools import lru_cache

from cuda_morph import api_table

_ROOTS = ("torch.cuda", "torch._C._cuda_", "torch.backends.cuda", "torch.backends.cudnn")
_LEGACY = re.compile(r"torch\.cuda(\.sparse)?\.\w+(Tensor|Storage)$")
_GRAPH = re.compile(
    r"torch\.cuda(\.graphs)?\.(CUDAGraph|graph|make_graphed_callables|graph_pool_handle"
    r"|is_current_stream_capturing|graphs)$"
)
_EXACT = {
    "torch.version.cuda": "CM207",
    "torch.profiler.ProfilerActivity.CUDA": "CM209",
    "torch.autograd.ProfilerActivity.CUDA": "CM209",
    "torch.distributed.Backend.NCCL": "CM301",
    "torch.distributed.is_nccl_available": "CM302",
    "torch.distributed.ProcessGroupNCCL": "CM302",
    "torch.distributed.distributed_c10d.is_nccl_available": "CM302",
    "torch.utils.cpp_extension.CUDAExtension": "CM501",
    "torch.utils.cpp_extension.CUDA_HOME": "CM501",
}
_DROPPED = "torch.distributed.distributed_c10d."


@lru_cache(maxsize=1)
def _known() -> frozenset[str]:
    return frozenset(api_table.by_name()) | {"torch.cuda", "torch.cuda.amp"}


def classify(name: str) -> tuple[str, str] | None:
    """Finds the rule of a qualified name.

    Args:
        name: For example ``torch.cuda.Stream.wait_event``, as resolved from the source.

    Returns:
        The code of the rule and the part of the name that is in PyTorch's table; ``None`` when
        the name has nothing to do with CUDA.
    """
    if not name.startswith("torch."):
        return None
    name = name.replace(_DROPPED, "torch.distributed.")
    for exact, rule in _EXACT.items():
        if name == exact or name.startswith(f"{exact}."):
            return rule, exact
    root = next((root for root in _ROOTS if _is_below(name, root)), None)
    if root is None:
        return None
    known = _longest_known(name)
    if root == "torch._C._cuda_":
        symbol = ".".join(name.split(".")[:3])
        return "CM203", symbol
    if root != "torch.cuda":
        return "CM206", known or name
    if known is None or (known == "torch.cuda" and name != "torch.cuda"):
        return "CM202", ".".join(name.split(".")[:3])
    return _cuda_rule(known), known


def _is_below(name: str, root: str) -> bool:
    return name == root or name.startswith(root if root.endswith("_") else f"{root}.")


def _longest_known(name: str) -> str | None:
    parts = name.split(".")
    known = _known()
    for length in range(len(parts), 1, -1):
        candidate = ".".join(parts[:length])
        if candidate in known:
            return candidate
    return None


def _cuda_rule(name: str) -> str:
    if _LEGACY.match(name):
        return "CM204"
    if _is_below(name, "torch.cuda.amp"):
        return "CM205"
    if _GRAPH.match(name):
        return "CM208"
    return "CM302" if _is_below(name, "torch.cuda.nccl") else "CM201"
