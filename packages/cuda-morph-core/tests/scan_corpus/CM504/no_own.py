import ctypes

lib = ctypes.CDLL("./libcudasomething_of_ours.so")
