"""Compares the simulated device with the CPU, operator by operator, on PyTorch's own samples."""

from __future__ import annotations
