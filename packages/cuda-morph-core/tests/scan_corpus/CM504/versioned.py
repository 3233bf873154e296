import ctypes

lib = ctypes.cdll.LoadLibrary("/usr/local/cuda/lib64/libcublas.so.12")  # >> CM504
