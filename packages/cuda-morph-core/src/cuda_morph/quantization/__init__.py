"""How a model is quantised, and which backends have kernels for that."""

from __future__ import annotations
