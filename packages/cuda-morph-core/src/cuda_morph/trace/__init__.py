"""The trace: which CUDA calls were answered how, and which operators ran on which kernels.

Nothing here is imported, and nothing wrapped, unless a trace is asked for.
"""
