"""Two plugins whose adapters exist as a simulation only: one has few names, one has all of CUDA's."""
