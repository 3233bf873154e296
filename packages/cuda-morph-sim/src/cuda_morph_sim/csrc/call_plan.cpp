#include "call_plan.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace cuda_morph_sim {
namespace {

// Arguments that CUDA's kernels take from the CPU whatever their shape: indices and probabilities
// are moved to the device, lengths are host data.
const std::unordered_map<std::string_view, std::vector<std::string_view>>& taken_from_host() {
  static const auto& names =
      *new std::unordered_map<std::string_view, std::vector<std::string_view>>{
          {"aten::index", {"indices"}},
          {"aten::_unsafe_index", {"indices"}},
          {"aten::index_put", {"indices"}},
          {"aten::index_put_", {"indices"}},
          {"aten::_unsafe_index_put", {"indices"}},
          {"aten::_index_put_impl", {"indices"}},
          {"aten::_index_put_impl_", {"indices"}},
          {"aten::_pack_padded_sequence", {"lengths"}},
          {"aten::_ctc_loss", {"targets", "input_lengths", "target_lengths"}},
          {"aten::_ctc_loss_backward", {"targets", "input_lengths", "target_lengths"}},
          {"aten::bernoulli", {"p"}},
          {"aten::bernoulli_", {"p"}},
      };
  return names;
}

} // namespace

CallPlan::CallPlan(const c10::OperatorHandle& op)
    : arguments(static_cast<uint16_t>(op.schema().arguments().size())),
      returns(static_cast<uint16_t>(op.schema().returns().size())) {
  const auto& schema = op.schema();
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const auto& argument = schema.arguments()[i];
    if (argument.name() == "generator") {
      generator = static_cast<int16_t>(i);
    }
    if (argument.alias_info() != nullptr && argument.alias_info()->isWrite()) {
      writes = true;
    }
  }
  draws = generator < 0 && op.hasTag(at::Tag::nondeterministic_seeded);
  const std::string_view name = schema.name();
  any_device = name.rfind("c10d::", 0) == 0;
  if (const auto found = taken_from_host().find(name); found != taken_from_host().end()) {
    indexes = found->second.front() == "indices";
    for (size_t i = 0; i < schema.arguments().size(); ++i) {
      const auto& wanted = found->second;
      if (std::find(wanted.begin(), wanted.end(), schema.arguments()[i].name()) != wanted.end()) {
        host_arguments |= uint32_t{1} << i;
      }
    }
  }
  // Without gradients it leaves out the positions of the extremes, which its backward pass reads.
  asks_for_gradients = name == "aten::_sparse_mm_reduce_impl";
  if (name == "aten::_pack_padded_sequence") {
    host_results = 0b10; // the batch sizes drive a loop on the host
  }
}

} // namespace cuda_morph_sim
