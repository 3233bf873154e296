"""PyTorch's own CUDA: a backend for which nothing is patched. It is a record, not a plugin."""

from __future__ import annotations

from cuda_morph.records import Backend

NAME = "cuda"

BACKEND = Backend(
    name=NAME,
    display_name="CUDA (nothing is changed)",
    vendor="built into PyTorch",
    device_type="cuda",
    adapter_module=None,
    collective_backend="nccl",
    visible_devices_env="CUDA_VISIBLE_DEVICES",
    spec="1.0",
    launch_blocking_env="CUDA_LAUNCH_BLOCKING",
    alloc_conf_env="PYTORCH_CUDA_ALLOC_CONF",
)
