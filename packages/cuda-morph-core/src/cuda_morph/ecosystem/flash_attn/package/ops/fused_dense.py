"""Linear layers that can hand their input on."""

from __future__ import annotations

from typing import Any

import torch  # noqa: TID253 - the package imports torch as its original does


def fused_dense_func(
    x: Any,
    weight: Any,
    bias: Any = None,
    return_residual: bool = False,
    process_group: Any = None,
    sequence_parallel: bool = True,
) -> Any:
    """Returns ``x @ weight.T + bias``, and `x` if asked for.

    Raises:
        NotImplementedError: A process group was given.
    """
    del sequence_parallel
    if process_group is not None:
        raise NotImplementedError("cuda-morph's flash_attn has no tensor-parallel layers")
    out = torch.nn.functional.linear(x, weight, bias)
    return (out, x) if return_residual else out


class FusedDense(torch.nn.Linear):  # type: ignore[misc] # torch has no types here
    """A linear layer that can hand its input on."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        return_residual: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(in_features, out_features, bias=bias, device=device, dtype=dtype)
        self.return_residual = return_residual

    def forward(self, x: Any, process_group: Any = None) -> Any:
        """Returns the result, and `x` if the layer was made so."""
        return fused_dense_func(x, self.weight, self.bias, self.return_residual, process_group)
