// Kernels that must know the device: making memory, copying, and giving views.
#pragma once

#include <torch/library.h>

namespace cuda_morph_sim {

void register_memory_kernels(torch::Library& library);
void register_recurrent_kernels(torch::Library& library);
void register_attention_kernels(torch::Library& library);
void register_half_kernels(torch::Library& library);

} // namespace cuda_morph_sim
