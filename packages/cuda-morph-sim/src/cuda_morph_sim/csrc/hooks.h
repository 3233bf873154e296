// What PyTorch's device-neutral code asks an accelerator.
#pragma once

namespace cuda_morph_sim {

void register_hooks();

} // namespace cuda_morph_sim
