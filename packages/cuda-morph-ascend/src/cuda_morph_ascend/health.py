"""What ``cuda-morph doctor`` looks at on a machine with Ascend cards."""

from __future__ import annotations

from cuda_morph import health_checks as make
from cuda_morph.visible_lists import ascending_integers
from cuda_morph_ascend.identity import ADVICE, BACKEND, SHIMS, required_torch

CHECKS = (
    make.tool_on_path("ascend.tool", "npu-smi", fix="Install the driver of the card."),
    make.folder_named("ascend.sdk", "ASCEND_HOME_PATH", fix=ADVICE.libraries),
    make.folder_named("ascend.operators", "ASCEND_OPP_PATH", fix=ADVICE.libraries),
    make.library_opens("ascend.library", "libascendcl.so", fix=ADVICE.libraries),
    make.versions_fit("ascend.versions", "torch_npu", required_torch, fix=ADVICE.install),
    make.variables_agree(
        "ascend.allocator",
        (("PYTORCH_NPU_ALLOC_CONF", "PYTORCH_ALLOC_CONF"),),
        fix="Set one of the two: torch_npu refuses both together.",
        even_if_equal=True,
    ),
    make.visible_devices(
        "ascend.visible",
        {str(BACKEND.visible_devices_env): ascending_integers},
        fix="Write plain numbers that rise, such as 0,1,3.",
    ),
    make.shims_off(
        "ascend.shims",
        SHIMS,
        variables=("TORCH_TRANSFER_TO_NPU",),
        fix=ADVICE.shim,
    ),
)
