"""RMS normalisation."""

from __future__ import annotations

from typing import Any

import torch  # noqa: TID253 - the package imports torch as its original does

from ..ops.normalisation import drop_add_norm  # noqa: TID252 - loaded under another name


def rms_norm(x: Any, weight: Any, epsilon: float) -> Any:
    """Returns `x` over the root of the mean of its squares, times `weight`."""
    return drop_add_norm(x, None, weight, None, 0.0, epsilon, rms=True)


def dropout_add_rms_norm(
    x0: Any,
    residual: Any,
    weight: Any,
    bias: Any,
    dropout_p: float,
    epsilon: float,
    rowscale: Any = None,
    layerscale: Any = None,
    prenorm: bool = False,
    residual_in_fp32: bool = False,
    return_dropout_mask: bool = False,
) -> Any:
    """RMS normalisation of ``dropout(x0 * rowscale * layerscale) + residual``.

    `residual_in_fp32` says the dtype of the sum where there is no residual.
    """
    return drop_add_norm(
        x0, residual, weight, bias, dropout_p, epsilon, rms=True, rowscale=rowscale,
        layerscale=layerscale, prenorm=prenorm, residual_in_fp32=residual_in_fp32,
        return_dropout_mask=return_dropout_mask,
    )  # fmt: skip


class RMSNorm(torch.nn.Module):  # type: ignore[misc] # torch has no types here
    """RMS normalisation over the last dimension."""

    def __init__(
        self, hidden_size: int, eps: float = 1e-5, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.eps = eps
        self.weight = torch.nn.Parameter(torch.ones(hidden_size, device=device, dtype=dtype))
        self.register_parameter("bias", None)

    def reset_parameters(self) -> None:
        """Sets the weight to ones."""
        torch.nn.init.ones_(self.weight)

    def forward(self, x: Any) -> Any:
        """Returns `x` normalised."""
        return rms_norm(x, self.weight, self.eps)


class DropoutAddRMSNorm(torch.nn.Module):  # type: ignore[misc] # torch has no types here
    """RMS normalisation after dropout and a residual."""

    def __init__(
        self,
        hidden_size: int,
        prenorm: bool = False,
        p: float = 0.0,
        eps: float = 1e-5,
        residual_in_fp32: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.prenorm, self.p, self.epsilon = prenorm, p, eps
        self.residual_in_fp32 = residual_in_fp32
        self.weight = torch.nn.Parameter(torch.ones(hidden_size, device=device, dtype=dtype))
        self.register_parameter("bias", None)

    def reset_parameters(self) -> None:
        """Sets the weight to ones."""
        torch.nn.init.ones_(self.weight)

    def forward(self, x0: Any, residual: Any = None) -> Any:
        """Returns the normalised sum; the sum too, if `prenorm`."""
        return dropout_add_rms_norm(
            x0, residual, self.weight, None, self.p if self.training else 0.0, self.epsilon,
            prenorm=self.prenorm, residual_in_fp32=self.residual_in_fp32,
        )  # fmt: skip
