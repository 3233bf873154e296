"""A simulated accelerator for cuda-morph: a real PrivateUse1 device over host memory."""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"
