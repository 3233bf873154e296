"""What ``cuda-morph doctor`` looks at on a machine with Intel GPUs."""

from __future__ import annotations

from cuda_morph import health_checks as make
from cuda_morph.visible_lists import integers
from cuda_morph_xpu.identity import ADVICE, wrong_build

CHECKS = (
    make.tool_on_path("xpu.tool", "xpu-smi", fix="Install the driver and xpu-smi."),
    make.build_fits("xpu.build", wrong_build, fix=ADVICE.install),
    make.library_opens("xpu.library", "libze_loader.so.1", fix=ADVICE.driver),
    make.visible_devices(
        "xpu.visible",
        {"ZE_AFFINITY_MASK": integers},
        fix="Write whole devices only, such as 0,1: with the form 0.0 PyTorch sees none.",
    ),
)
