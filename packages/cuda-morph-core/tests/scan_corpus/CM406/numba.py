from numba import cuda  # >> CM406


@cuda.jit  # >> CM406
def kernel(a):
    pass
