"""Cross entropy as a module."""

from __future__ import annotations

from typing import Any

import torch  # noqa: TID253 - the package imports torch as its original does

from ..ops.triton.cross_entropy import cross_entropy_loss  # noqa: TID252 - loaded under another name


class CrossEntropyLoss(torch.nn.Module):  # type: ignore[misc] # torch has no types here
    """Cross entropy with label smoothing and a penalty on the logarithm of the sum."""

    def __init__(
        self,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
        logit_scale: float = 1.0,
        lse_square_scale: float = 0.0,
        inplace_backward: bool = False,
        process_group: Any = None,
        return_z_loss: bool = False,
    ) -> None:
        super().__init__()
        if reduction not in {"mean", "none", "sum"}:
            raise NotImplementedError("Only support reduction = 'mean' or 'none' or 'sum'")
        self.ignore_index, self.reduction = ignore_index, reduction
        self.label_smoothing, self.logit_scale = label_smoothing, logit_scale
        self.lse_square_scale = lse_square_scale
        self.inplace_backward, self.process_group = inplace_backward, process_group
        self.return_z_loss = return_z_loss

    def forward(self, input: Any, target: Any, precomputed_lse: Any = None) -> Any:  # noqa: A002
        """Returns the loss of (N, classes) for labels (N); the penalty too, if asked for."""
        parts = cross_entropy_loss(
            input,
            target,
            precomputed_lse=precomputed_lse,
            label_smoothing=self.label_smoothing,
            logit_scale=self.logit_scale,
            lse_square_scale=self.lse_square_scale,
            ignore_index=self.ignore_index,
            inplace_backward=self.inplace_backward,
            process_group=self.process_group,
        )
        if self.reduction == "mean":
            count = (target != self.ignore_index).sum()
            parts = tuple(part.sum() / count for part in parts)
        elif self.reduction == "sum":
            parts = tuple(part.sum() for part in parts)
        return parts if self.return_z_loss else parts[0]
