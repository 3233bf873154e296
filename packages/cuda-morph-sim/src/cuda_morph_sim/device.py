"""Importing this module loads the simulated device under its own name, like a vendor's adapter."""

from __future__ import annotations

from cuda_morph_sim.loader import load

__all__ = ["module"]

module = load()
"""The device module, also found as ``torch.sim``."""
