from triton.runtime import driver  # >> CM402
