// Page-locked host memory: ordinary memory whose addresses are remembered.
#pragma once

#include <c10/core/Allocator.h>

namespace cuda_morph_sim {

c10::Allocator* pinned_allocator();

// True for any address inside a pinned allocation, as for cudaPointerGetAttributes.
bool is_pinned_address(const void* address);

} // namespace cuda_morph_sim
