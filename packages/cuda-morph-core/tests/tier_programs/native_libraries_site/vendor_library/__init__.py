"""Stands for a library that has its own branch for the accelerator."""

from __future__ import annotations

import torch


def available():
    return torch.cuda.is_available()


def type_of(tensor):
    return tensor.device.type


def seen_as_cuda(tensor):
    return tensor.is_cuda


def fail():
    torch.cuda.is_available()
    raise ValueError("on purpose")


def collective_backend():
    import torch.distributed as dist

    return dist.get_backend(), dist.is_nccl_available()
