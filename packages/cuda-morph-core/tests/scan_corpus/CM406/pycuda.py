import pycuda.autoinit  # >> CM406
from pycuda import driver  # >> CM406
