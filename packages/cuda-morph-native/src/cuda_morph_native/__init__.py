"""Compiled interception tier of cuda-morph; used by cuda-morph-core when it can be loaded.

Importing this package never fails: `AVAILABLE` says whether the extension was built for this
interpreter and `REASON` why not, so that core can name the cause and take a slower tier.
"""

from __future__ import annotations

try:
    from cuda_morph_native import _native as native
except ImportError as error:
    AVAILABLE = False
    REASON = f"the extension of cuda-morph-native is not built for this interpreter ({error})"
else:
    AVAILABLE = True
    REASON = ""

__all__ = ["AVAILABLE", "REASON", "native"]
