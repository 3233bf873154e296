import cupy  # >> CM406

kernel = cupy.RawKernel("extern C __global__ void f() {}", "f")  # >> CM505
