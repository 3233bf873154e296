import ctypes

lib = ctypes.CDLL("libm.so.6")
