"""flash_attn's semantics through torch_musa's flash attention operator.

``_scaled_dot_product_attention_flash_musa`` has the conventions of PyTorch's operator: heads before
the sequence, a scale of one over the root of the dimension, and the output first among the results.
Where its causal mask ends when there are more keys than queries is not published, so it is used for
squares only.

Sources: torch_musa 2.7.1 (dtypes and head dimensions); calls in vllm-musa and in Moore Threads'
benchmarks.
"""

from __future__ import annotations

import math
from typing import Any

import torch  # noqa: TID253 - imported by the first call of a kernel only

FEATURES = ("causal", "backward")
MAX_HEAD_DIM = 160
_USUAL_DIM = 128
"""Head dimensions up to this one are taken, and 160 besides."""


def forward(query: Any, key: Any, value: Any, *, scale: float, causal: bool = False) -> Any:
    """Computes attention over (batch, heads, sequence, dimension).

    Args:
        query: (B, H, Sq, D).
        key: (B, H, Sk, D).
        value: (B, H, Sk, D).
        scale: Factor on the scores; only the usual one is known to be taken.
        causal: For as many queries as keys.

    Returns:
        Output (B, H, Sq, D).

    Raises:
        NotImplementedError: The operator is not there, or not known to give exactly this.
    """
    dim = query.shape[-1]
    if dim > _USUAL_DIM and dim != MAX_HEAD_DIM:
        raise NotImplementedError(f"head dimension {dim}")
    if not math.isclose(scale, dim**-0.5, rel_tol=1e-6):
        raise NotImplementedError("a scale of one's own")
    if causal and query.shape[2] != key.shape[2]:
        raise NotImplementedError("a causal mask that is no square")
    operator = getattr(torch.ops.aten, "_scaled_dot_product_attention_flash_musa", None)
    if operator is None:
        raise NotImplementedError("torch_musa has no flash attention operator")
    tensors = (query.contiguous(), key.contiguous(), value.contiguous())
    return operator(*tensors, dropout_p=0.0, is_causal=causal)[0]
