// float16 products with float32 accumulation.
//
// Accelerators multiply float16 in units that accumulate in float32. The CPU has no such unit: its
// own float16 kernels are about ten times slower than its float32 ones and round after each step.
// These operators therefore compute in float32 on the host and round once, at the end.
#include "fallback.h"
#include "kernels.h"
#include "tensor_alias.h"

#include <ATen/core/Tensor.h>

#include <memory>

namespace cuda_morph_sim {
namespace {

bool is_half(const at::Tensor& tensor) {
  return is_on_device(tensor) && tensor.scalar_type() == at::kHalf;
}

class HalfKernel final : public c10::OperatorKernel {
 public:
  explicit HalfKernel(const c10::OperatorHandle& op) : plan_(op) {}

  void operator()(
      const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    const bool half = convert(*stack, stack->size() - op.schema().arguments().size(), is_half,
                              at::kFloat);
    run_on_host(op, plan_, keys, stack);
    if (half) {
      convert(*stack, stack->size() - op.schema().returns().size(), is_on_device, at::kHalf);
    }
  }

 private:
  template <typename Wanted>
  static bool convert(
      torch::jit::Stack& stack, size_t first, Wanted wanted, at::ScalarType dtype) {
    bool any = false;
    for (size_t i = first; i < stack.size(); ++i) {
      if (!stack[i].isTensor()) {
        continue;
      }
      const auto& tensor = stack[i].toTensor();
      if (tensor.defined() && wanted(tensor)) {
        stack[i] = tensor.to(dtype);
        any = true;
      }
    }
    return any;
  }

  CallPlan plan_;
};

constexpr const char* kProducts[] = {
    "addmm", "addmv", "baddbmm", "bmm", "convolution", "convolution_backward", "mm", "mv"};

} // namespace

void register_half_kernels(torch::Library& library) {
  for (const char* name : kProducts) {
    const auto op =
        c10::Dispatcher::singleton().findSchemaOrThrow((std::string("aten::") + name).c_str(), "");
    library.impl(
        name, torch::CppFunction::makeFromBoxedFunctor(std::make_unique<HalfKernel>(op)));
  }
}

} // namespace cuda_morph_sim
