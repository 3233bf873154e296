import numba.cuda  # >> CM406
