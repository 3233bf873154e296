"""``torch.backends.cuda``, ``torch.backends.cudnn`` and ``torch.version``."""

from __future__ import annotations

import warnings

import torch

cuda, cudnn = torch.backends.cuda, torch.backends.cudnn
BUILT = torch._C._has_cuda
"""What is said of a build stays PyTorch's own answer, on a CUDA build as well."""


def toggles(owner, *names):
    """Sets each switch to both values and puts it back."""
    for name in names:
        before = getattr(owner, name)
        for value in (True, False):
            setattr(owner, name, value)
            assert getattr(owner, name) is value, name
        setattr(owner, name, before)


def check_is_built_follows_the_view(world):
    assert cuda.is_built() is (BUILT or world.view == "cuda")


def check_matmul_switches(world):
    toggles(
        cuda.matmul,
        "allow_tf32",
        "allow_fp16_reduced_precision_reduction",
        "allow_bf16_reduced_precision_reduction",
    )
    torch.set_float32_matmul_precision("high")
    assert torch.get_float32_matmul_precision() == "high"
    torch.set_float32_matmul_precision("highest")


def check_cudnn_switches(world):
    toggles(cudnn, "enabled", "benchmark", "deterministic", "allow_tf32")
    with cudnn.flags(enabled=False, benchmark=True):
        assert cudnn.enabled is False
        assert cudnn.benchmark is True
    assert cudnn.enabled is True


def check_cudnn_is_honest(world):
    assert cudnn.is_available() is BUILT
    assert (cudnn.version() is not None) is BUILT
    assert cudnn.is_acceptable(torch.ones(1)) is False


def check_attention_switches(world):
    toggles_of = {
        cuda.enable_flash_sdp: cuda.flash_sdp_enabled,
        cuda.enable_math_sdp: cuda.math_sdp_enabled,
        cuda.enable_mem_efficient_sdp: cuda.mem_efficient_sdp_enabled,
        cuda.enable_cudnn_sdp: cuda.cudnn_sdp_enabled,
    }
    for switch, state in toggles_of.items():
        switch(False)
        assert state() is False
        switch(True)
        assert state() is True


def check_attention_in_every_kernel_context(world):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q = torch.ones(1, 2, 4, 8, device="cuda")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with cuda.sdp_kernel(enable_flash=False, enable_math=True, enable_mem_efficient=False):
            first = torch.nn.functional.scaled_dot_product_attention(q, q, q)
    with sdpa_kernel(SDPBackend.MATH):
        second = torch.nn.functional.scaled_dot_product_attention(q, q, q)
    assert torch.allclose(first, second)
    assert first.device == world.device()


def check_libraries_can_be_preferred(world):
    assert cuda.preferred_linalg_library() is not None
    assert cuda.preferred_blas_library() is not None
    assert cuda.cublas_workspace_size() == 0


def check_versions_are_the_build_s(world):
    assert (torch.version.cuda is not None) is BUILT
    assert torch.version.hip is None
