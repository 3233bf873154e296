#include "call_plan.h"

#include <string_view>
#include <unordered_set>

namespace cuda_morph_sim {
namespace {

// Operators whose CUDA kernels accept CPU tensors of any shape next to device tensors.
const std::unordered_set<std::string_view>& takes_host_tensors() {
  static const auto& names = *new std::unordered_set<std::string_view>{
      // advanced indexing moves CPU indices to the device
      "aten::index",
      "aten::_unsafe_index",
      "aten::index_put",
      "aten::index_put_",
      "aten::_unsafe_index_put",
      "aten::_index_put_impl",
      "aten::_index_put_impl_",
      // lengths are host data
      "aten::_pack_padded_sequence",
      "aten::_ctc_loss",
      "aten::_ctc_loss_backward",
      "aten::_use_cudnn_ctc_loss",
      // copies
      "aten::copy_",
      "aten::copy",
      "aten::_copy_from",
      "aten::_copy_from_and_resize",
      "aten::set_data",
      // probabilities are moved to the device
      "aten::bernoulli_",
      "aten::bernoulli",
  };
  return names;
}

} // namespace

CallPlan::CallPlan(const c10::FunctionSchema& schema)
    : arguments(static_cast<uint16_t>(schema.arguments().size())),
      returns(static_cast<uint16_t>(schema.returns().size())) {
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const auto& argument = schema.arguments()[i];
    if (argument.name() == "generator") {
      generator = static_cast<int16_t>(i);
    }
    if (argument.alias_info() != nullptr && argument.alias_info()->isWrite()) {
      writes = true;
    }
  }
  const std::string_view name = schema.name();
  if (takes_host_tensors().count(name) != 0 || name.rfind("c10d::", 0) == 0) {
    host_tensors = HostTensors::kAllowed;
  }
  if (name == "aten::_pack_padded_sequence") {
    host_results = 0b10; // the batch sizes drive a loop on the host
  }
}

} // namespace cuda_morph_sim
