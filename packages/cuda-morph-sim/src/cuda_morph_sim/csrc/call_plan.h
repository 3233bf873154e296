// What the fallback needs to know about an operator, worked out once from its schema.
#pragma once

#include <ATen/core/function_schema.h>

#include <cstdint>

namespace cuda_morph_sim {

enum class HostTensors : uint8_t {
  kScalarsOnly, // like CUDA: a CPU tensor may stand beside a device tensor when it has no dimension
  kAllowed, // CUDA takes whole CPU tensors here too, e.g. index tensors
};

struct CallPlan {
  explicit CallPlan(const c10::FunctionSchema& schema);

  uint16_t arguments;
  uint16_t returns;
  // Position of the argument that takes a random generator, or -1.
  int16_t generator = -1;
  // True when some argument is written: then shapes and storages may change under the call.
  bool writes = false;
  HostTensors host_tensors = HostTensors::kScalarsOnly;
  // Bit i set: result i stays on the host, as on CUDA.
  uint8_t host_results = 0;
};

} // namespace cuda_morph_sim
