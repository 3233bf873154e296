"""What ``cuda-morph doctor`` looks at on a machine with Cambricon cards.

torch_mlu reads the first of three variables of visible devices; their syntax is not published.
"""

from __future__ import annotations

from cuda_morph import health_checks as make
from cuda_morph_cambricon.identity import ADVICE, SHIMS, required_torch

CHECKS = (
    make.tool_on_path("cambricon.tool", "cnmon", fix="Install the driver of the card."),
    make.folder_named("cambricon.sdk", "NEUWARE_HOME", fix=ADVICE.libraries),
    make.library_opens("cambricon.library", "libcnrt.so", fix=ADVICE.libraries),
    make.versions_fit("cambricon.versions", "torch_mlu", required_torch, fix=ADVICE.install),
    make.variables_agree(
        "cambricon.visible",
        (("CN_VISIBLE_DEVICES", "MLU_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),),
        fix="Set one: torch_mlu reads the first of CN_, MLU_ and CUDA_VISIBLE_DEVICES.",
    ),
    make.shims_off("cambricon.shims", SHIMS, fix=ADVICE.shim),
)
