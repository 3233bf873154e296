// Puts the device's kernels into PyTorch's dispatcher.
#pragma once

namespace cuda_morph_sim {

// All of aten, and the fallback for whatever is registered later. Returns the operator count.
int register_operators();

// The operators of torch.distributed, once it has been imported. Returns their count.
int register_collectives();

// The operators that change dtype under autocast.
void register_autocast();

// Timing on the device for torch.profiler.
void register_profiler();

} // namespace cuda_morph_sim
