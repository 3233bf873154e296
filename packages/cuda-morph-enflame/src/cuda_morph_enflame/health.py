"""What ``cuda-morph doctor`` looks at on a machine with Enflame cards."""

from __future__ import annotations

from cuda_morph import health_checks as make
from cuda_morph.visible_lists import cuda_like
from cuda_morph_enflame.identity import ADVICE, SHIMS, required_torch

CHECKS = (
    make.tool_on_path("enflame.tool", "efsmi", fix="Install the driver of the card."),
    make.library_opens("enflame.library", "libtopsrt.so", fix=ADVICE.libraries),
    make.versions_fit("enflame.versions", "torch_gcu", required_torch, fix=ADVICE.install),
    make.visible_devices(
        "enflame.visible",
        {"TOPS_VISIBLE_DEVICES": cuda_like(("GCU-", "MIG-"))},
        fix="Write numbers such as 0,1, each once, or identifiers that start with GCU- or MIG-.",
    ),
    make.shims_off("enflame.shims", SHIMS, fix=ADVICE.shim),
)
