#include "call_frame.h"

#include "generator.h"
#include "adapter_limits.h"

#include <ATen/core/List.h>

namespace cuda_morph_sim {
namespace {

using TensorLists = c10::List<c10::List<at::Tensor>>;

bool is_list_of_tensor_lists(const c10::IValue& value) {
  return value.isList() && !value.toListRef().empty() && value.toListRef()[0].isTensorList();
}

} // namespace

void CallFrame::throw_mixed(c10::Device a, c10::Device b, size_t position) const {
  TORCH_CHECK(
      false,
      "Expected all tensors to be on the same device, but found at least two devices, ",
      a.str(),
      " and ",
      b.is_cpu() ? "cpu" : b.str(),
      "! (when checking argument for argument ",
      schema_.arguments()[position].name(),
      " in method ",
      schema_.name(),
      ")");
  __builtin_unreachable();
}

void CallFrame::meet_device(const at::Tensor& tensor, size_t position) {
  const auto device = tensor.unsafeGetTensorImpl()->device();
  if (tensor_device_ < 0) {
    tensor_device_ = device.index();
    if (device_ < 0) {
      device_ = device.index();
    }
  } else if (
      tensor_device_ != device.index() && !plan_.any_device) {
    throw_mixed(c10::Device(kDeviceType, tensor_device_), device, position);
  }
}

void CallFrame::meet_host(const at::Tensor& tensor, size_t position) {
  if ((plan_.host_arguments >> position & 1) != 0) {
    return;
  }
  const auto* info = schema_.arguments()[position].alias_info();
  if (tensor.dim() > 0 || (info != nullptr && info->isWrite())) {
    if (host_position_ < 0) {
      host_position_ = static_cast<int16_t>(position);
    }
  }
}

void CallFrame::check_devices() const {
  if (host_position_ >= 0 && tensor_device_ >= 0 && !plan_.any_device) [[unlikely]] {
    TORCH_CHECK(
        !(plan_.indexes && host_position_ == 0),
        "indices should be either on cpu or on the same device as the indexed tensor (cpu)");
    throw_mixed(
        c10::Device(kDeviceType, tensor_device_), c10::Device(c10::kCPU), host_position_);
  }
}

at::Tensor CallFrame::argument(const at::Tensor& tensor, size_t position) {
  if (!tensor.defined()) {
    return tensor;
  }
  if (is_on_device(tensor)) {
    meet_device(tensor, position);
    return host_alias(tensor, aliases_, lasting());
  }
  if (tensor.is_cpu()) {
    meet_host(tensor, position);
  }
  return tensor;
}

void CallFrame::argument(c10::IValue& slot, size_t position) {
  if (slot.isTensor()) {
    const auto& tensor = slot.toTensor();
    if (is_on_device(tensor)) [[likely]] {
      meet_device(tensor, position);
      slot = host_alias(std::move(slot).toTensor(), aliases_, lasting());
    } else if (tensor.defined() && tensor.is_cpu()) {
      meet_host(tensor, position);
    }
  } else if (slot.isDevice()) {
    device_argument(slot);
  } else if (slot.isGenerator()) {
    generator_argument(slot);
  } else if (slot.isList()) {
    list_argument(slot, position);
  }
}

void CallFrame::list_argument(c10::IValue& slot, size_t position) {
  if (slot.isTensorList()) {
    c10::List<at::Tensor> converted;
    for (const at::Tensor& tensor : slot.toTensorVector()) {
      converted.push_back(argument(tensor, position));
    }
    slot = std::move(converted);
  } else if (slot.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> converted;
    for (const std::optional<at::Tensor>& tensor : slot.toOptionalTensorVector()) {
      converted.push_back(
          tensor ? std::optional<at::Tensor>(argument(*tensor, position)) : std::nullopt);
    }
    slot = std::move(converted);
  } else if (is_list_of_tensor_lists(slot)) {
    TensorLists converted;
    for (const auto& inner : slot.toListRef()) {
      c10::List<at::Tensor> row;
      for (const at::Tensor& tensor : inner.toTensorVector()) {
        row.push_back(argument(tensor, position));
      }
      converted.push_back(std::move(row));
    }
    slot = std::move(converted);
  }
}

void CallFrame::device_argument(c10::IValue& slot) {
  const auto device = slot.toDevice();
  if (device.type() == kDeviceType) {
    device_ = resolve_index(device);
    slot = c10::Device(c10::kCPU);
  } else if (device.is_cpu()) {
    stays_on_host_ = true;
  }
}

void CallFrame::generator_argument(c10::IValue& slot) {
  const auto generator = slot.toGenerator();
  TORCH_CHECK(
      generator.device().type() == kDeviceType,
      "Expected a '",
      c10::DeviceTypeName(kDeviceType, /*lower_case=*/true),
      "' device type for generator but found '",
      c10::DeviceTypeName(generator.device().type(), /*lower_case=*/true),
      "'");
  slot = host_generator_of(generator);
}

void CallFrame::to_host(torch::jit::Stack& stack) {
  const size_t base = stack.size() - plan_.arguments;
  for (size_t i = 0; i < plan_.arguments; ++i) {
    argument(stack[base + i], i);
  }
  check_devices();
  if (plan_.asks_for_gradients) [[unlikely]] {
    for (const auto& alias : aliases_) {
      if (alias.device_tensor.requires_grad()) {
        alias.host_tensor.set_requires_grad(true);
      }
    }
  }
  if (plan_.generator >= 0) {
    auto& slot = stack[base + plan_.generator];
    // Without a device tensor it is our generator that brought the call here.
    TORCH_CHECK(
        host_position_ < 0 || tensor_device_ >= 0 || slot.isNone(),
        "Expected a 'cpu' device type for generator but found '",
        c10::DeviceTypeName(kDeviceType, /*lower_case=*/true),
        "'");
    if (slot.isNone()) {
      slot = host_generator_of(default_generator(device()));
    }
  }
}

at::Tensor CallFrame::device_result(at::Tensor&& tensor) {
  limits::settle(tensor, device());
  limits::narrow(tensor);
  return cuda_morph_sim::to_device(std::move(tensor), aliases_, device());
}

void CallFrame::result(c10::IValue& slot) {
  if (slot.isTensor()) {
    slot = device_result(std::move(slot).toTensor());
  } else if (slot.isTensorList()) {
    c10::List<at::Tensor> converted;
    auto list = std::move(slot).toTensorList();
    for (size_t i = 0; i < list.size(); ++i) {
      converted.push_back(device_result(list.extract(i)));
    }
    slot = std::move(converted);
  } else if (is_list_of_tensor_lists(slot)) {
    TensorLists converted;
    for (const auto& inner : slot.toListRef()) {
      c10::List<at::Tensor> row;
      for (at::Tensor& tensor : inner.toTensorVector()) {
        row.push_back(device_result(std::move(tensor)));
      }
      converted.push_back(std::move(row));
    }
    slot = std::move(converted);
  } else if (slot.isDevice() && slot.toDevice().is_cpu()) {
    slot = c10::Device(kDeviceType, device());
  }
}

void CallFrame::to_device(torch::jit::Stack& stack) {
  if (plan_.writes) {
    for (const auto& alias : aliases_) {
      limits::narrow(alias.host_tensor);
    }
    follow_written_aliases(aliases_);
  }
  if (stays_on_host_) [[unlikely]] {
    return;
  }
  const size_t base = stack.size() - plan_.returns;
  for (size_t i = 0; i < plan_.returns; ++i) {
    if ((plan_.host_results >> i & 1) == 0) {
      result(stack[base + i]);
    }
  }
}

} // namespace cuda_morph_sim
