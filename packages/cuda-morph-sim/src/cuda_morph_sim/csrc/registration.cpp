#include "registration.h"

#include "fallback.h"
#include "kernels.h"
#include "tensor_alias.h"

#include <torch/library.h>

#include <string_view>
#include <unordered_set>
#include <vector>

namespace cuda_morph_sim {
namespace {

using c10::DispatchKey;

// A library's registrations end with it; these last as long as the process.
torch::Library& lasting_library(
    torch::Library::Kind kind, const char* space, std::optional<DispatchKey> key) {
  return *new torch::Library(kind, space, key, __FILE__, __LINE__);
}

// PyTorch's device-neutral kernels of these make their result with `empty` and fill or copy it,
// which gives device memory its right size, device and error before any work is done.
const std::unordered_set<std::string_view>& device_neutral_factories() {
  static const auto& names = *new std::unordered_set<std::string_view>{
      "aten::clone",       "aten::_to_copy",     "aten::contiguous",   "aten::empty_like",
      "aten::empty_permuted", "aten::full",      "aten::full_like",    "aten::is_pinned",
      "aten::lift",        "aten::lift_fresh",   "aten::new_empty",    "aten::new_empty_strided",
      "aten::new_full",    "aten::new_ones",     "aten::new_zeros",    "aten::ones",
      "aten::ones_like",   "aten::_pin_memory",  "aten::rand",         "aten::rand_like",
      "aten::randint",     "aten::randint_like", "aten::randn",        "aten::randn_like",
      "aten::scalar_tensor", "aten::zeros",      "aten::zeros_like",   "aten::copy",
      "aten::_efficientzerotensor",
  };
  return names;
}

bool is_view(const c10::FunctionSchema& schema) {
  for (const auto& result : schema.returns()) {
    if (result.alias_info() != nullptr && !result.alias_info()->isWrite()) {
      return true;
    }
  }
  return false;
}

bool is_composite(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd) ||
      op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutogradNonFunctional);
}

// True where PyTorch's own kernel is right on any device: views only change metadata, and the
// list operators handle their tensors one by one, each on its own device.
bool keeps_device_neutral_kernel(const c10::OperatorHandle& op) {
  if (op.hasKernelForDispatchKey(DispatchKey::CPU) ||
      !op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd)) {
    return false;
  }
  const std::string_view name = op.schema().name();
  return device_neutral_factories().count(name) != 0 || name.rfind("aten::_foreach_", 0) == 0 ||
      is_view(op.schema());
}

std::string qualified(const c10::OperatorName& name) {
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

template <typename Wanted>
int register_matching(
    torch::Library& library, std::string_view space, Wanted wanted) {
  auto& dispatcher = c10::Dispatcher::singleton();
  int count = 0;
  for (const auto& name : dispatcher.getAllOpNames()) {
    if (name.name.rfind(space, 0) != 0) {
      continue;
    }
    const auto op = dispatcher.findOp(name);
    if (!op || !op->hasSchema() || !wanted(*op)) {
      continue;
    }
    library.impl(
        qualified(name).c_str(),
        torch::CppFunction::makeFromBoxedFunctor(std::make_unique<HostKernel>(*op)));
    ++count;
  }
  return count;
}

at::Tensor as_host(const at::Tensor& tensor) {
  return is_on_device(tensor) ? make_lasting_host_alias(tensor) : tensor;
}

at::Tensor as_device(const at::Tensor& tensor, int64_t index) {
  Aliases none;
  return to_device(tensor.detach(), none, static_cast<c10::DeviceIndex>(index));
}

} // namespace

int register_operators() {
  // One fallback only: registering one goes over every operator there is. The other layouts need
  // none, since each operator that has a host kernel for them gets an entry below.
  lasting_library(torch::Library::IMPL, "_", kDispatchKey)
      .fallback(torch::CppFunction::makeFromBoxedFunction<&run_unplanned_on_host>());
  auto& aten = lasting_library(torch::Library::IMPL, "aten", kDispatchKey);
  register_memory_kernels(aten);
  register_recurrent_kernels(aten);
  register_half_kernels(aten);
  // With gradients and without, as inference mode leaves the autograd key out.
  register_attention_kernels(aten);
  register_attention_kernels(
      lasting_library(torch::Library::IMPL, "aten", DispatchKey::AutogradPrivateUse1));
  // Without an entry of their own, composite kernels would win over the fallback and then find no
  // kernel for this device further down.
  int count = register_matching(aten, "aten::", [](const auto& op) {
    return !op.hasKernelForDispatchKey(kDispatchKey) && !keeps_device_neutral_kernel(op) &&
        (op.hasKernelForDispatchKey(DispatchKey::CPU) || is_composite(op));
  });
  const std::pair<DispatchKey, DispatchKey> layouts[] = {
      {DispatchKey::SparsePrivateUse1, DispatchKey::SparseCPU},
      {DispatchKey::SparseCsrPrivateUse1, DispatchKey::SparseCsrCPU},
      {DispatchKey::NestedTensorPrivateUse1, DispatchKey::NestedTensorCPU}};
  for (const auto& [device_key, host_key] : layouts) {
    auto& library = lasting_library(torch::Library::IMPL, "aten", device_key);
    count += register_matching(library, "aten::", [device_key, host_key](const auto& op) {
      return !op.hasKernelForDispatchKey(device_key) && op.hasKernelForDispatchKey(host_key);
    });
  }
  auto& own = lasting_library(torch::Library::DEF, "cuda_morph_sim", std::nullopt);
  own.def("as_host(Tensor(a) self) -> Tensor(a)", &as_host);
  own.def("as_device(Tensor(a) self, int index) -> Tensor(a)", &as_device);
  return count;
}

} // namespace cuda_morph_sim
