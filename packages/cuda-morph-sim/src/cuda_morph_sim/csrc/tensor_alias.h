// Device tensors as CPU tensors over the same bytes, and back. No data is copied.
#pragma once

#include "device_state.h"

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

namespace cuda_morph_sim {

inline bool is_on_device(const at::Tensor& tensor) {
  return tensor.defined() && tensor.unsafeGetTensorImpl()->device_type() == kDeviceType;
}

// A device tensor and the CPU tensor that stands for it during one call.
struct Alias {
  at::Tensor device_tensor;
  at::Tensor host_tensor;
  // Where the bytes were before the call; a CPU kernel that resizes an output moves them.
  const void* host_address = nullptr;
};

using Aliases = c10::SmallVector<Alias, 6>;

// The CPU tensor over a device tensor's bytes. It carries no autograd keys: the caller is below
// autograd already.
at::Tensor make_host_alias(const at::Tensor& device_tensor);

// Like `make_host_alias`, but a full-fledged tensor that user code may hold.
at::Tensor make_lasting_host_alias(const at::Tensor& device_tensor);

// The alias of a tensor within one call; the same tensor gives the same alias. A lasting one is for
// work that goes on after the call, on another thread that is not below autograd.
const at::Tensor& host_alias(at::Tensor device_tensor, Aliases& aliases, bool lasting = false);

// Turns what a CPU kernel returned into a device tensor: an argument's alias becomes the argument,
// a view of an argument shares the argument's storage, anything else moves to `device`.
at::Tensor to_device(at::Tensor&& host_tensor, Aliases& aliases, c10::DeviceIndex device);

// Carries what a CPU kernel did to its outputs' shape and storage over to the device tensors.
void follow_written_aliases(Aliases& aliases);

} // namespace cuda_morph_sim
