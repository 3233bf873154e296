// Puts the device's kernels into PyTorch's dispatcher.
#pragma once

namespace cuda_morph_sim {

// All of aten, and the fallback for whatever is registered later. Returns the operator count.
int register_operators();

// The operators that change dtype under autocast.
void register_autocast();

// Gives the autograd engine threads for the device if it has started without.
void start_autograd_threads();

// Waits until the engine's threads have let go of finished passes. They hold Python objects for a
// moment after backward() returns; a thread that drops one while the interpreter is being taken
// down aborts the process.
void settle_autograd_threads();

// Timing on the device for torch.profiler.
void register_profiler();

} // namespace cuda_morph_sim
