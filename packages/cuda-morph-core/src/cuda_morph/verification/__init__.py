"""Operators of a device against a float64 reference on the CPU, on PyTorch's own samples."""
