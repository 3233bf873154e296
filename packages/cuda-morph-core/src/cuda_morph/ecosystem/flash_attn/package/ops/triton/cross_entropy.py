"""Cross entropy with a penalty on the logarithm of the sum, over a sharded vocabulary too."""

from __future__ import annotations

from typing import Any

import torch  # noqa: TID253 - the package imports torch as its original does


def cross_entropy_loss(
    logits: Any,
    labels: Any,
    precomputed_lse: Any = None,
    label_smoothing: float = 0.0,
    logit_scale: float = 1.0,
    lse_square_scale: float = 0.0,
    ignore_index: int = -100,
    inplace_backward: bool = False,
    process_group: Any = None,
) -> tuple[Any, Any]:
    """Returns the loss of each row, and the part of it that is the penalty.

    Args:
        logits: (N, classes).
        labels: (N).
        precomputed_lse: (N): the logarithm of the sum of exponentials, if it is known.
        label_smoothing: Weight of the uniform distribution.
        logit_scale: Factor on the logits.
        lse_square_scale: Weight of the squared logarithm.
        ignore_index: Rows with this label have a loss of 0.
        inplace_backward: A hint to save memory; it changes nothing.
        process_group: Not possible here.

    Returns:
        float32 (N) and float32 (N), the second without a gradient.

    Raises:
        NotImplementedError: A process group was given.
    """
    del inplace_backward
    if process_group is not None:
        raise NotImplementedError("cuda-morph's flash_attn has no vocabulary-parallel loss")
    scores = logits.float() * logit_scale
    lse = torch.logsumexp(scores, -1)
    if precomputed_lse is not None:
        # The value that was handed over, with the gradient of the one that it stands for.
        lse = precomputed_lse.detach() + (lse - lse.detach())
    ignored = labels == ignore_index
    chosen = scores.gather(-1, labels.clamp(min=0).long()[:, None])[:, 0]
    losses = lse - (1 - label_smoothing) * chosen
    if label_smoothing:
        losses = losses - label_smoothing * scores.mean(-1)
    penalty = lse_square_scale * lse.square()
    losses = (losses + penalty).masked_fill(ignored, 0.0)
    return losses, penalty.detach().masked_fill(ignored, 0.0)
