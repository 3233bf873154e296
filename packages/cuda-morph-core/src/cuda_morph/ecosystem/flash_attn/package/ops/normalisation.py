"""Layer and RMS normalisation after dropout and a residual, in float32."""

from __future__ import annotations

from typing import Any

import torch  # noqa: TID253 - the package imports torch as its original does


def drop_add(
    x0: Any,
    residual: Any,
    dropout_p: float,
    rowscale: Any = None,
    layerscale: Any = None,
) -> tuple[Any, Any]:
    """Returns scaled, dropped `x0` plus residual in float32, and the mask of what was kept."""
    x = x0.float()
    if rowscale is not None:
        x = x * rowscale.float()[..., None]
    if layerscale is not None:
        x = x * layerscale.float()
    kept = torch.ones(x.shape, dtype=torch.uint8, device=x.device)
    if dropout_p > 0:
        kept = (torch.rand_like(x) >= dropout_p).to(torch.uint8)
        x = x * kept / (1 - dropout_p)
    return (x if residual is None else x + residual.float()), kept


def normalise(x: Any, weight: Any, bias: Any, epsilon: float, *, rms: bool) -> Any:
    """Returns float32 `x` normalised over the last dimension, scaled and shifted."""
    if not rms:
        x = x - x.mean(-1, keepdim=True)
    out = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon) * weight.float()
    return out if bias is None else out + bias.float()


def drop_add_norm(
    x0: Any,
    residual: Any,
    weight: Any,
    bias: Any,
    dropout_p: float,
    epsilon: float,
    *,
    rms: bool,
    rowscale: Any = None,
    layerscale: Any = None,
    prenorm: bool = False,
    residual_in_fp32: bool = False,
    return_dropout_mask: bool = False,
) -> Any:
    """Normalises dropped `x0` plus residual; the sum too, if `prenorm`."""
    x, kept = drop_add(x0, residual, dropout_p, rowscale, layerscale)
    if residual is not None:
        wide = residual.dtype
    else:
        wide = torch.float32 if residual_in_fp32 else x0.dtype
    x = x.to(wide)
    out = normalise(x.float(), weight, bias, epsilon, rms=rms).to(x0.dtype)
    parts = [out, *([x] if prenorm else []), *([kept] if return_dropout_mask else [])]
    return tuple(parts) if len(parts) > 1 else out
