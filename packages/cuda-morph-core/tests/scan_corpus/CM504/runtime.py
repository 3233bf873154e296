import ctypes

lib = ctypes.CDLL("libcudart.so")  # >> CM504
