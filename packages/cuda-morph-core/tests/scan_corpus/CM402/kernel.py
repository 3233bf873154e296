import triton  # >> CM402
import triton.language as tl  # >> CM402


@triton.jit
def kernel(x, n: tl.constexpr):
    pass
