import torch


@torch.library.custom_op("my::op", mutates_args=(), device_types="cpu")
def op(x: torch.Tensor) -> torch.Tensor:
    return x.clone()
