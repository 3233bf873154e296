from numba import jit, prange


@jit
def f(n):
    return n
