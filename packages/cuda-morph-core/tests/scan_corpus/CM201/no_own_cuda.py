from . import cuda

cuda.synchronize()
