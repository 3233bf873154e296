// Device tensors that are no plain strided ones: COO and compressed sparse tensors hold their parts
// as ordinary tensors, nested tensors describe a flat buffer.
#pragma once

#include "tensor_alias.h"

namespace cuda_morph_sim {

// True for tensors that these functions are for.
inline bool has_other_layout(const c10::TensorImpl& impl) {
  constexpr c10::DispatchKeySet kOther(
      {c10::DispatchKey::Sparse,
       c10::DispatchKey::SparseCsr,
       c10::DispatchKey::NestedTensor,
       c10::DispatchKey::Quantized});
  return impl.key_set().has_any(kOther) || !impl.has_storage();
}

at::Tensor layout_host_alias(const at::Tensor& device_tensor);

at::Tensor layout_to_device(
    at::Tensor&& host_tensor, Aliases& aliases, c10::DeviceIndex device);

void layout_follow(
    const at::Tensor& device_tensor, const at::Tensor& host_tensor, Aliases& aliases);

} // namespace cuda_morph_sim
