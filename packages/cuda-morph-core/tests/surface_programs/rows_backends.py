"""Calls for the rows of ``torch.backends.cuda`` and ``torch.backends.cudnn``."""

from __future__ import annotations

import warnings

import torch

cuda, cudnn = torch.backends.cuda, torch.backends.cudnn


def kept(owner, name, *values):
    """Returns a call that sets a switch to each value and reads it again."""

    def call(world):
        before = getattr(owner, name)
        for value in values:
            setattr(owner, name, value)
            assert getattr(owner, name) == value, (name, value)
        setattr(owner, name, before)

    return call


def switched(switch, state):
    def call(world):
        before = state()
        for value in (not before, before):
            switch(value)
            assert state() is value

    return call


def attention():
    q = torch.ones(1, 2, 4, 8, device="cuda")
    return q, torch.nn.functional.scaled_dot_product_attention(q, q, q)


def attention_parameters(world):
    q, _ = attention()
    asked = cuda.SDPAParams(q, q, q, None, 0.0, False, False)
    for can in (
        cuda.can_use_flash_attention,
        cuda.can_use_efficient_attention,
        cuda.can_use_cudnn_attention,
    ):
        assert can(asked) is False
    assert cuda.is_flash_attention_available() is cuda.can_use_flash_attention(asked)


def one_kernel(world):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with cuda.sdp_kernel(enable_flash=False, enable_math=True, enable_mem_efficient=False):
            assert not cuda.flash_sdp_enabled()
            q, output = attention()
    assert torch.allclose(output, torch.ones_like(q))


def plan_cache(world):
    caches = cuda.cufft_plan_cache
    assert isinstance(caches, cuda.cuFFTPlanCacheManager)
    assert isinstance(caches[0], cuda.cuFFTPlanCache)
    torch.fft.fft(torch.ones(8, device="cuda"))
    assert caches.size == caches["cuda:0"].size == 0
    assert caches.clear() is None


def is_built(world):
    assert cuda.is_built() is (world.view == "cuda")


def flags(world):
    before = cudnn.enabled
    with cudnn.flags(enabled=not before, benchmark=True):
        assert cudnn.enabled is not before
        assert cudnn.benchmark is True
    assert cudnn.enabled is before


def set_flags(world):
    previous = cudnn.set_flags(_benchmark=True)
    assert cudnn.benchmark is True
    cudnn.set_flags(*previous)


def no_library(world):
    assert cudnn.is_available() is False
    assert cudnn.version() is None
    assert cudnn.is_acceptable(torch.ones(1, device="cuda", dtype=torch.float16)) is False


def benchmark_limit(world):
    before = cudnn.benchmark_limit
    cudnn.benchmark_limit = 3
    assert cudnn.benchmark_limit == 3
    cudnn.benchmark_limit = before


def classes(world):
    assert isinstance(cuda.matmul, cuda.cuBLASModule)
    assert isinstance(cudnn, cudnn.CudnnModule)
    assert isinstance(vars(cuda.cuFFTPlanCache)["size"], cuda.cuFFTPlanCacheAttrContextProp)
    assert torch.float16 in cudnn.CUDNN_TENSOR_DTYPES


def rocm(world):
    assert cuda.is_ck_sdpa_available() is False
    chosen = cuda.preferred_rocm_fa_library("aotriton")
    assert cuda.preferred_rocm_fa_library() == chosen
    cuda.preferred_rocm_fa_library("default")


def precisions(world):
    kept(cudnn.conv, "fp32_precision", "ieee", "tf32")(world)
    kept(cudnn.rnn, "fp32_precision", "ieee", "tf32")(world)


def prefer_linalg():
    for name in ("magma", "cusolver"):
        assert cuda.preferred_linalg_library(name).name.lower() == name
        assert cuda.preferred_linalg_library().name.lower() == name
    torch.linalg.inv(torch.eye(2, device="cuda"))
    cuda.preferred_linalg_library("default")


def prefer_blas():
    for name in ("cublaslt", "cublas"):
        assert cuda.preferred_blas_library(name).name.lower() == name
        assert cuda.preferred_blas_library().name.lower() == name


def limit_plans():
    before = cuda.cufft_plan_cache.max_size
    cuda.cufft_plan_cache[0].max_size = 7
    assert cuda.cufft_plan_cache.max_size == 7
    cuda.cufft_plan_cache.max_size = before


def workspace(function):
    def call():
        assert function(1024) == 1024
        assert function() == 1024
        function(0)

    return call


def _rows(prefix, call, names):
    return {f"{prefix}.{name}": call for name in names.split()}


_CUDA, _CUDNN = "torch.backends.cuda", "torch.backends.cudnn"
_MATMUL = f"{_CUDA}.matmul"
_SWITCHES_OF_MATMUL = (
    "allow_tf32",
    "allow_fp16_reduced_precision_reduction",
    "allow_bf16_reduced_precision_reduction",
    "allow_fp16_accumulation",
)
_SWITCHES_OF_ATTENTION = (
    ("enable_cudnn_sdp", "cudnn_sdp_enabled"),
    ("enable_flash_sdp", "flash_sdp_enabled"),
    ("enable_math_sdp", "math_sdp_enabled"),
    ("enable_mem_efficient_sdp", "mem_efficient_sdp_enabled"),
    ("allow_fp16_bf16_reduction_math_sdp", "fp16_bf16_reduction_math_sdp_allowed"),
)
CALLS = {
    f"{_CUDA}.is_built": is_built,
    f"{_CUDA}.sdp_kernel": one_kernel,
    **_rows(_CUDA, classes, "matmul cuBLASModule cuFFTPlanCacheAttrContextProp"),
    **_rows(_CUDA, rocm, "is_ck_sdpa_available preferred_rocm_fa_library"),
    **_rows(_CUDA, plan_cache, "cufft_plan_cache cufft_plan_cache.size cufft_plan_cache.clear"),
    **_rows(_CUDA, plan_cache, "cuFFTPlanCache cuFFTPlanCacheManager"),
    **_rows(_CUDA, attention_parameters, "SDPAParams is_flash_attention_available"),
    **_rows(_CUDA, attention_parameters, "can_use_flash_attention can_use_efficient_attention"),
    **_rows(_CUDA, attention_parameters, "can_use_cudnn_attention"),
    **{f"{_MATMUL}.{name}": kept(cuda.matmul, name, True, False) for name in _SWITCHES_OF_MATMUL},
    f"{_MATMUL}.fp32_precision": kept(cuda.matmul, "fp32_precision", "ieee", "tf32"),
    **{
        f"{_CUDA}.{name}": switched(getattr(cuda, setter), getattr(cuda, getter))
        for setter, getter in _SWITCHES_OF_ATTENTION
        for name in (setter, getter)
    },
    **{
        f"{_CUDNN}.{name}": kept(cudnn, name, True, False)
        for name in ("enabled", "benchmark", "deterministic", "allow_tf32")
    },
    f"{_CUDNN}.fp32_precision": kept(cudnn, "fp32_precision", "ieee", "tf32"),
    f"{_CUDNN}.depthwise_kernel": kept(cudnn, "depthwise_kernel", "cudnn", "auto"),
    **_rows(_CUDNN, precisions, "conv rnn"),
    f"{_CUDNN}.benchmark_limit": benchmark_limit,
    f"{_CUDNN}.flags": flags,
    f"{_CUDNN}.set_flags": set_flags,
    **_rows(_CUDNN, no_library, "version is_available is_acceptable"),
    **_rows(_CUDNN, classes, "CUDNN_TENSOR_DTYPES CudnnModule"),
}
STUBS = {
    f"{_CUDA}.preferred_linalg_library": prefer_linalg,
    f"{_CUDA}.preferred_blas_library": prefer_blas,
    f"{_CUDA}.cufft_plan_cache.max_size": limit_plans,
    f"{_CUDA}.cublas_workspace_size": workspace(cuda.cublas_workspace_size),
    f"{_CUDA}.cublaslt_workspace_size": workspace(cuda.cublaslt_workspace_size),
    f"{_CUDA}.blas_workspace_size": workspace(cuda.blas_workspace_size),
}
