// Sparse device tensors: COO and compressed layouts hold their parts as ordinary device tensors.
#pragma once

#include "tensor_alias.h"

namespace cuda_morph_sim {

at::Tensor sparse_host_alias(const at::Tensor& device_tensor);

at::Tensor sparse_to_device(
    at::Tensor&& host_tensor, Aliases& aliases, c10::DeviceIndex device);

void sparse_follow(
    const at::Tensor& device_tensor, const at::Tensor& host_tensor, Aliases& aliases);

} // namespace cuda_morph_sim
