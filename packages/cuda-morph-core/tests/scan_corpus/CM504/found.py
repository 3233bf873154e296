from ctypes.util import find_library

path = find_library("cudart")  # >> CM504
