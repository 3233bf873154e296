"""What ``cuda-morph doctor`` looks at on a machine with AMD GPUs."""

from __future__ import annotations

from cuda_morph import health_checks as make
from cuda_morph.visible_lists import cuda_like
from cuda_morph_rocm.identity import ADVICE, wrong_build

CHECKS = (
    make.tool_on_path("rocm.tool", "rocm-smi", fix="Install the driver and the ROCm tools."),
    make.build_fits("rocm.build", wrong_build, fix=ADVICE.install),
    make.folder_named("rocm.sdk", "ROCM_HOME", fix="Needed to build extensions only."),
    make.library_opens("rocm.library", "libamdhip64.so", fix=ADVICE.libraries),
    make.variables_agree(
        "rocm.visible",
        (("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),),
        fix="Set one of the two.",
    ),
    make.visible_devices(
        "rocm.visible_syntax",
        {name: cuda_like(("GPU-",)) for name in ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")},
        fix="Write numbers such as 0,1, each once. A list longer than that of "
        "ROCR_VISIBLE_DEVICES is an error.",
    ),
)
