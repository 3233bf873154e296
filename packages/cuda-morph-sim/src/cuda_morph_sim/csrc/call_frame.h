// One call through the fallback: arguments to the host, results back to the device.
#pragma once

#include "call_plan.h"
#include "tensor_alias.h"

#include <ATen/core/stack.h>

namespace cuda_morph_sim {

class CallFrame {
 public:
  CallFrame(const CallPlan& plan, const c10::FunctionSchema& schema)
      : plan_(plan), schema_(schema) {}

  // Replaces every device tensor, device and generator among the arguments.
  void to_host(torch::jit::Stack& stack);

  // Replaces every host tensor among the results, and follows written arguments.
  void to_device(torch::jit::Stack& stack);

  c10::DeviceIndex device() const noexcept {
    return device_ >= 0 ? device_ : current_device();
  }

 private:
  // Only a full-fledged alias can say that it wants a gradient.
  bool lasting() const noexcept {
    return plan_.any_device || plan_.asks_for_gradients;
  }
  at::Tensor argument(const at::Tensor& tensor, size_t position);
  void argument(c10::IValue& slot, size_t position);
  void list_argument(c10::IValue& slot, size_t position);
  void device_argument(c10::IValue& slot);
  void generator_argument(c10::IValue& slot);
  at::Tensor device_result(at::Tensor&& tensor);
  void result(c10::IValue& slot);
  void meet_device(const at::Tensor& tensor, size_t position);
  void meet_host(const at::Tensor& tensor, size_t position);
  void check_devices() const;
  [[noreturn]] void throw_mixed(c10::Device a, c10::Device b, size_t position) const;

  const CallPlan& plan_;
  const c10::FunctionSchema& schema_;
  Aliases aliases_;
  c10::DeviceIndex device_ = -1;
  // The device of the first device tensor; -1 before one was met.
  c10::DeviceIndex tensor_device_ = -1;
  int16_t host_position_ = -1;
  bool stays_on_host_ = false;
};

} // namespace cuda_morph_sim
