"""Layer and RMS normalisation, with a second input and a second weight."""

from __future__ import annotations

from typing import Any

import torch  # noqa: TID253 - the package imports torch as its original does

from ...ops.normalisation import drop_add, normalise  # noqa: TID252 - loaded under another name


def layer_norm_fn(
    x: Any,
    weight: Any,
    bias: Any,
    residual: Any = None,
    x1: Any = None,
    weight1: Any = None,
    bias1: Any = None,
    eps: float = 1e-6,
    dropout_p: float = 0.0,
    rowscale: Any = None,
    prenorm: bool = False,
    residual_in_fp32: bool = False,
    zero_centered_weight: bool = False,
    is_rms_norm: bool = False,
    return_dropout_mask: bool = False,
    out_dtype: Any = None,
    out: Any = None,
    residual_out: Any = None,
) -> Any:
    """Normalises ``dropout(x * rowscale) + dropout(x1) + residual``.

    Args:
        x: (..., N).
        weight: (N).
        bias: (N) or ``None``.
        residual: Added after dropout.
        x1: A second input, dropped independently.
        weight1: Also normalise with this weight.
        bias1: Its bias.
        eps: Added to the variance.
        dropout_p: Probability of dropping.
        rowscale: (...): factor on the rows of `x`.
        prenorm: Also return the sum.
        residual_in_fp32: Keep the sum in float32 where there is no residual.
        zero_centered_weight: Use ``weight + 1``.
        is_rms_norm: Do not subtract the mean.
        return_dropout_mask: Also return what was kept of `x` and `x1`.
        out_dtype: Dtype of the result; ``None``: that of `x`.
        out: Write the result here.
        residual_out: Write the sum here.

    Returns:
        The result, with `weight1` a second one, then the sum and the masks if asked for.
    """
    total, kept = drop_add(x, residual, dropout_p, rowscale)
    kept1 = None
    if x1 is not None:
        more, kept1 = drop_add(x1, None, dropout_p)
        total = total + more
    wide = x.dtype if residual is None else residual.dtype
    total = total.to(torch.float32 if residual is None and residual_in_fp32 else wide)
    if residual_out is not None:
        total = residual_out.copy_(total)
    dtype = out_dtype or x.dtype
    shift = 1.0 if zero_centered_weight else 0.0
    results = [
        normalise(total.float(), w.float() + shift, b, eps, rms=is_rms_norm).to(dtype)
        for w, b in ((weight, bias), (weight1, bias1))
        if w is not None
    ]
    if out is not None:
        results[0] = out.copy_(results[0])
    parts = [*results, *[total][: bool(prenorm)], *[kept, kept1][: 2 * bool(return_dropout_mask)]]
    return tuple(parts) if len(parts) > 1 else parts[0]


def rms_norm_fn(
    x: Any,
    weight: Any,
    bias: Any,
    residual: Any = None,
    x1: Any = None,
    weight1: Any = None,
    bias1: Any = None,
    eps: float = 1e-6,
    dropout_p: float = 0.0,
    rowscale: Any = None,
    prenorm: bool = False,
    residual_in_fp32: bool = False,
    zero_centered_weight: bool = False,
    return_dropout_mask: bool = False,
    out_dtype: Any = None,
    out: Any = None,
    residual_out: Any = None,
) -> Any:
    """`layer_norm_fn` without subtracting the mean."""
    return layer_norm_fn(
        x, weight, bias, residual, x1, weight1, bias1, eps, dropout_p, rowscale, prenorm,
        residual_in_fp32, zero_centered_weight, True, return_dropout_mask, out_dtype, out,
        residual_out,
    )  # fmt: skip


class RMSNorm(torch.nn.Module):  # type: ignore[misc] # torch has no types here
    """RMS normalisation with dropout and a residual."""

    def __init__(
        self,
        hidden_size: int,
        eps: float = 1e-5,
        dropout_p: float = 0.0,
        zero_centered_weight: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.eps, self.zero_centered_weight = eps, zero_centered_weight
        self.drop = torch.nn.Dropout(dropout_p) if dropout_p > 0 else None
        self.weight = torch.nn.Parameter(torch.empty(hidden_size, device=device, dtype=dtype))
        self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets the weight to what leaves its input as it is."""
        torch.nn.init.constant_(self.weight, 0.0 if self.zero_centered_weight else 1.0)

    def forward(
        self,
        x: Any,
        residual: Any = None,
        prenorm: bool = False,
        residual_in_fp32: bool = False,
    ) -> Any:
        """Returns the normalised sum; the sum too, if `prenorm`."""
        return rms_norm_fn(
            x, self.weight, self.bias, residual=residual, eps=self.eps,
            dropout_p=self.drop.p if self.drop is not None and self.training else 0.0,
            prenorm=prenorm, residual_in_fp32=residual_in_fp32,
            zero_centered_weight=self.zero_centered_weight,
        )  # fmt: skip
