"""What ``cuda-morph doctor`` looks at on a machine with Biren cards.

How the runtime reads SUPA_VISIBLE_DEVICES is not published, so its value is not judged.
"""

from __future__ import annotations

from cuda_morph import health_checks as make
from cuda_morph_biren.identity import ADAPTERS, ADVICE, SHIMS, required_torch

CHECKS = (
    make.tool_on_path("biren.tool", "brsmi", fix="Install the driver of the card."),
    make.library_opens("biren.library", "libsupa-runtime.so", fix=ADVICE.libraries),
    *(
        make.versions_fit(f"biren.versions.{adapter}", adapter, required_torch, fix=ADVICE.install)
        for adapter in ADAPTERS
    ),
    make.variables_agree(
        "biren.visible",
        (("SUPA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),),
        fix="Keep SUPA_VISIBLE_DEVICES: it wins over CUDA_VISIBLE_DEVICES.",
    ),
    make.shims_off("biren.shims", SHIMS, fix=ADVICE.shim),
)
