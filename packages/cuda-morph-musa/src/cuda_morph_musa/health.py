"""What ``cuda-morph doctor`` looks at on a machine with Moore Threads cards.

How the runtime reads MUSA_VISIBLE_DEVICES is not published, so its value is not judged.
"""

from __future__ import annotations

from cuda_morph import health_checks as make
from cuda_morph_musa.identity import ADVICE, SHIMS, required_torch

CHECKS = (
    make.tool_on_path("musa.tool", "mthreads-gmi", fix="Install the driver of the card."),
    make.folder_named("musa.sdk", "MUSA_HOME", fix=ADVICE.libraries),
    make.library_opens("musa.library", "libmusart.so", fix=ADVICE.libraries),
    make.versions_fit("musa.versions", "torch_musa", required_torch, fix=ADVICE.install),
    make.variables_agree(
        "musa.visible",
        (("MUSA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),),
        fix="Keep MUSA_VISIBLE_DEVICES: it wins over CUDA_VISIBLE_DEVICES.",
    ),
    make.shims_off("musa.shims", SHIMS, fix=ADVICE.shim),
)
