"""What core can do without any vendor: the CPU, a plugin, and PyTorch's own CUDA left alone."""

from __future__ import annotations

from cuda_morph.records import Backend

REAL_CUDA = Backend(
    name="cuda",
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
"""PyTorch's own CUDA: a record for which nothing is patched, and no plugin."""
