"""torch_musa's flash attention operator on elementary ones, for the simulated device.

The operator belongs to PyTorch's own namespace, so it is registered there. A causal mask that is no
square is refused: where it would end is not published.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - built when a simulated adapter is, with torch loaded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_NAME = "_scaled_dot_product_attention_flash_musa"
_SCHEMA = (
    f"{_NAME}(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, bool is_causal=False)"
    " -> (Tensor, Tensor, Tensor)"
)
_DTYPES = (torch.float16, torch.bfloat16)
_library: Any = None


def functions() -> Mapping[str, Callable[..., object]]:
    """Registers the operator, once per process; the adapter module itself gets nothing."""
    global _library
    if _library is None:
        _library = torch.library.Library("aten", "FRAGMENT")
        _library.define(_SCHEMA)
        _library.impl(_NAME, _flash_attention, "CompositeImplicitAutograd")
    return {}


def _flash_attention(
    query: Any, key: Any, value: Any, dropout_p: float = 0.0, is_causal: bool = False
) -> tuple[Any, Any, Any]:
    if query.dtype not in _DTYPES:
        raise RuntimeError(f"flash attention takes float16 and bfloat16, not {query.dtype}")
    if is_causal and query.shape[2] != key.shape[2]:
        raise RuntimeError("simulated for squares only: the alignment is not published")
    if dropout_p:
        raise RuntimeError("dropout is not simulated")
    scores = query.float() @ key.float().transpose(-1, -2) / query.shape[-1] ** 0.5
    if is_causal:
        above = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).triu(1)
        scores = scores.masked_fill(above, -torch.inf)
    out = (torch.softmax(scores, -1) @ value.float()).to(query.dtype)
    return out, torch.logsumexp(scores, -1).detach(), torch.empty(0, device=query.device)
