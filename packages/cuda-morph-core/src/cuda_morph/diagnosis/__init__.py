"""What ``cuda-morph doctor`` finds out about an installation."""

from __future__ import annotations
