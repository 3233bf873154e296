// Autocast without one template instance per operator: three boxed kernels, one per policy.
#include "device_state.h"
#include "registration.h"

#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace cuda_morph_sim {
namespace {

using at::Tensor;
using torch::jit::Stack;

constexpr auto kKey = c10::DispatchKey::AutocastPrivateUse1;

enum class Policy { kLowPrecision, kFloat, kFloatResult, kWidest };

bool is_eligible(const Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == kDeviceType &&
      tensor.is_floating_point() && tensor.scalar_type() != at::kDouble;
}

template <typename Visit>
void for_each_tensor(const c10::IValue& value, Visit visit) {
  if (value.isTensor()) {
    visit(value.toTensor());
  } else if (value.isTensorList()) {
    for (const Tensor& tensor : value.toTensorVector()) {
      visit(tensor);
    }
  }
}

Tensor cast(const Tensor& tensor, at::ScalarType dtype) {
  return is_eligible(tensor) && tensor.scalar_type() != dtype
      ? at::autocast::cached_cast(dtype, tensor, kDeviceType)
      : tensor;
}

void cast_argument(c10::IValue& value, at::ScalarType dtype) {
  if (value.isTensor()) {
    value = cast(value.toTensor(), dtype);
  } else if (value.isTensorList()) {
    c10::List<Tensor> converted;
    for (const Tensor& tensor : value.toTensorVector()) {
      converted.push_back(cast(tensor, dtype));
    }
    value = std::move(converted);
  } else if (value.isOptionalTensorList()) {
    c10::List<std::optional<Tensor>> converted;
    for (const std::optional<Tensor>& tensor : value.toOptionalTensorVector()) {
      converted.push_back(
          tensor ? std::optional<Tensor>(cast(*tensor, dtype)) : std::nullopt);
    }
    value = std::move(converted);
  }
}

at::ScalarType widest(at::ArrayRef<c10::IValue> arguments) {
  auto dtype = at::autocast::get_autocast_dtype(kDeviceType);
  for (const auto& argument : arguments) {
    for_each_tensor(argument, [&](const Tensor& tensor) {
      if (is_eligible(tensor) && tensor.scalar_type() == at::kFloat) {
        dtype = at::kFloat;
      }
    });
  }
  return dtype;
}

// Sums and products keep their input but answer in float32, unless the caller chose a dtype.
void ask_for_float(const c10::FunctionSchema& schema, at::ArrayRef<c10::IValue> arguments, Stack* stack) {
  if (!arguments[0].isTensor() || !is_eligible(arguments[0].toTensor())) {
    return;
  }
  const size_t base = stack->size() - arguments.size();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (schema.arguments()[i].name() == "dtype" && arguments[i].isNone()) {
      (*stack)[base + i] = at::kFloat;
    }
  }
}

template <Policy policy>
void run(const c10::OperatorHandle& op, Stack* stack) {
  c10::impl::ExcludeDispatchKeyGuard no_autocast(kKey);
  const auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
  if constexpr (policy == Policy::kFloatResult) {
    ask_for_float(op.schema(), arguments, stack);
  } else {
    const auto dtype = policy == Policy::kFloat ? at::kFloat
        : policy == Policy::kLowPrecision
        ? at::autocast::get_autocast_dtype(kDeviceType)
        : widest(arguments);
    const size_t base = stack->size() - arguments.size();
    for (size_t i = base; i < stack->size(); ++i) {
      cast_argument((*stack)[i], dtype);
    }
  }
  op.callBoxed(stack);
}

template <Policy policy>
torch::CppFunction kernel() {
  return torch::CppFunction::makeFromBoxedFunction<&run<policy>>();
}

[[noreturn]] Tensor refuse_binary_cross_entropy(
    const Tensor&, const Tensor&, const std::optional<Tensor>&, int64_t) {
  TORCH_CHECK(
      false,
      "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
      "Use torch.nn.functional.binary_cross_entropy_with_logits or torch.nn.BCEWithLogitsLoss "
      "instead; both are safe to autocast.");
  __builtin_unreachable();
}

} // namespace

#define SIM_NAME_1(op) #op
#define SIM_NAME_2(op, overload) #op "." #overload
#define SIM_PICK(_1, _2, chosen, ...) chosen
#define SIM_NAME(...) SIM_PICK(__VA_ARGS__, SIM_NAME_2, SIM_NAME_1)(__VA_ARGS__)
#define SIM_LOW(...) aten.impl(SIM_NAME(__VA_ARGS__), kernel<Policy::kLowPrecision>());
#define SIM_FLOAT(...) aten.impl(SIM_NAME(__VA_ARGS__), kernel<Policy::kFloat>());
#define SIM_FLOAT_RESULT(...) aten.impl(SIM_NAME(__VA_ARGS__), kernel<Policy::kFloatResult>());
#define SIM_WIDEST(...) aten.impl(SIM_NAME(__VA_ARGS__), kernel<Policy::kWidest>());

void register_autocast() {
  auto& all = *new torch::Library(torch::Library::IMPL, "_", kKey, __FILE__, __LINE__);
  all.fallback(torch::CppFunction::makeFallthrough());
  auto& aten = *new torch::Library(torch::Library::IMPL, "aten", kKey, __FILE__, __LINE__);
  AT_FORALL_LOWER_PRECISION_FP(SIM_LOW)
  AT_FORALL_FP32(SIM_FLOAT)
  AT_FORALL_FP32_SET_OPT_DTYPE(SIM_FLOAT_RESULT)
  AT_FORALL_PROMOTE(SIM_WIDEST)
  SIM_FLOAT(norm, Scalar)
  SIM_FLOAT(norm, ScalarOpt_dim)
  aten.impl("binary_cross_entropy", &refuse_binary_cross_entropy);
}

} // namespace cuda_morph_sim
