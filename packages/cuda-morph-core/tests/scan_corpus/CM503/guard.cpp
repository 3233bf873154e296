#include <torch/extension.h>
#include <c10/cuda/CUDAGuard.h> // >> CM503
