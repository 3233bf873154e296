"""What ``cuda-morph doctor`` looks at on a machine with MetaX GPUs."""

from __future__ import annotations

from cuda_morph import health_checks as make
from cuda_morph_metax.identity import ADVICE, wrong_build

CHECKS = (
    make.tool_on_path("metax.tool", "mx-smi", fix="Install the driver of the card."),
    make.build_fits("metax.build", wrong_build, fix=ADVICE.install),
    make.folder_named("metax.sdk", "MACA_PATH", fix=ADVICE.libraries),
    make.folder_named("metax.bridge", "CUCC_PATH", fix="Needed to build extensions only."),
    make.library_opens("metax.library", "libmcruntime.so", fix=ADVICE.libraries),
)
