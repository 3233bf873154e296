#pragma once
#include <cuda_runtime.h> // >> CM503
#include "cublas_v2.h" // >> CM503
