import cupy as cp  # >> CM406

a = cp.zeros(3)
