// The device allocator that PyTorch finds for the simulated device.
#pragma once

#include <c10/core/Allocator.h>

namespace cuda_morph_sim {

// Allocates on the current device.
c10::Allocator* device_allocator();

// Registers the allocator for the device type.
void register_allocator();

} // namespace cuda_morph_sim
