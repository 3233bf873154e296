// The boxed fallback: any operator with a CPU kernel runs on the device's bytes in place.
#pragma once

#include "call_plan.h"

#include <ATen/core/boxing/OperatorKernel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace cuda_morph_sim {

// Runs one operator call on the host.
void run_on_host(
    const c10::OperatorHandle& op,
    const CallPlan& plan,
    c10::DispatchKeySet keys,
    torch::jit::Stack* stack);

// For operators that were not there at registration: works out the plan on each call.
void run_unplanned_on_host(
    const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

// One operator's kernel, with its plan.
class HostKernel final : public c10::OperatorKernel {
 public:
  explicit HostKernel(const c10::OperatorHandle& op) : plan_(op) {}

  void operator()(
      const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    run_on_host(op, plan_, keys, stack);
  }

 private:
  CallPlan plan_;
};

// How often a kernel ran through the fallback in this process.
int64_t fallback_calls() noexcept;

} // namespace cuda_morph_sim
