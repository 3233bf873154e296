// `scaled_dot_product_attention` with a mask and `is_causal` together.
//
// The CPU's fused kernel takes both, PyTorch's composite kernel, which every other device without a
// fused one gets, refuses. Where the CPU would take both, the causal mask is joined to the other.
#include "kernels.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/NativeFunctions.h>
#include <ATen/core/Tensor.h>

namespace cuda_morph_sim {
namespace {

using at::Tensor;

// The conditions of `sdp::use_flash_attention_cpp` that a call with a mask can fail.
bool cpu_takes_both(
    const Tensor& query, const Tensor& value, const Tensor& mask, double dropout) {
  return at::globalContext().userEnabledFlashSDP() && dropout == 0.0 && query.dim() == 4 &&
      query.size(-1) == value.size(-1) && !mask.requires_grad();
}

Tensor with_causal(const Tensor& mask, const Tensor& query, const Tensor& key) {
  const auto causal =
      at::ones({query.size(-2), key.size(-2)}, mask.options().dtype(at::kBool)).tril();
  if (mask.scalar_type() == at::kBool) {
    return mask.logical_and(causal);
  }
  return mask.masked_fill(causal.logical_not(), -std::numeric_limits<double>::infinity());
}

Tensor attention(
    const Tensor& query,
    const Tensor& key,
    const Tensor& value,
    const std::optional<Tensor>& mask,
    double dropout,
    bool is_causal,
    std::optional<double> scale,
    bool enable_gqa) {
  if (is_causal && mask && mask->defined() && cpu_takes_both(query, value, *mask, dropout)) {
    return at::native::scaled_dot_product_attention(
        query, key, value, with_causal(*mask, query, key), dropout, false, scale, enable_gqa);
  }
  return at::native::scaled_dot_product_attention(
      query, key, value, mask, dropout, is_causal, scale, enable_gqa);
}

} // namespace

void register_attention_kernels(torch::Library& library) {
  library.impl("scaled_dot_product_attention", &attention);
}

} // namespace cuda_morph_sim
