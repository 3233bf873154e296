"""Gated and squared activations."""

from __future__ import annotations

from typing import Any

import torch  # noqa: TID253 - the package imports torch as its original does


def swiglu(x: Any, y: Any) -> Any:
    """Returns ``silu(x) * y``, computed in float32."""
    return (torch.nn.functional.silu(x.float()) * y.float()).to(x.dtype)


def sqrelu_fwd(x: Any) -> Any:
    """Returns the square of the positive part."""
    return torch.nn.functional.relu(x).square().to(x.dtype)


def relu_bwd(g: Any, x: Any) -> Any:
    """Returns the gradient of the positive part."""
    return torch.where(x >= 0, g, 0.0).to(x.dtype)


def sqrelu_bwd(g: Any, x: Any) -> Any:
    """Returns the gradient of the squared positive part."""
    return (2.0 * g * torch.nn.functional.relu(x)).to(x.dtype)
