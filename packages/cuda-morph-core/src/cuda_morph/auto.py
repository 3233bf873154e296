"""``import cuda_morph.auto`` activates cuda-morph: the form for code that can take one line.

The backend, view and fallback come from the ``CUDA_MORPH_*`` variables. In every other respect it
is ``cuda_morph.activate()``, and `cuda_morph.deactivate` takes it back.

Example:
    >>> import cuda_morph.auto
    >>> cuda_morph.is_active()
    True
"""

from __future__ import annotations

from cuda_morph.activation import activate

activation = activate()
"""The manifest of what was done."""
