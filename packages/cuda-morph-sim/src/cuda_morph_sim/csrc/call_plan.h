// What the fallback needs to know about an operator, worked out once from its schema.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>

namespace cuda_morph_sim {

struct CallPlan {
  explicit CallPlan(const c10::OperatorHandle& op);

  uint16_t arguments;
  uint16_t returns;
  // Position of the argument that takes a random generator, or -1.
  int16_t generator = -1;
  // True when the operator draws random numbers and takes no generator.
  bool draws = false;
  // True when some argument is written: then shapes and storages may change under the call.
  bool writes = false;
  // Bit i set: argument i may be a CPU tensor of any shape, where CUDA takes one too. Elsewhere a
  // CPU tensor may stand beside a device tensor only when it has no dimension.
  uint32_t host_arguments = 0;
  // Any argument may be anywhere: the collectives of torch.distributed.
  bool any_device = false;
  // Argument 0 is indexed by the others, which has an error message of its own.
  bool indexes = false;
  // The kernel computes more where a gradient will be wanted, and asks its arguments: aliases must
  // answer as the device's tensors do.
  bool asks_for_gradients = false;
  // Bit i set: result i stays on the host, as on CUDA.
  uint8_t host_results = 0;
};

} // namespace cuda_morph_sim
