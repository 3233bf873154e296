#include "my_cuda_free_header.h"
