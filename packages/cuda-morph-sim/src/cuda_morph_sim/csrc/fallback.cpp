#include "fallback.h"

#include "call_frame.h"
#include "generator.h"
#include "adapter_limits.h"
#include "memory.h"

#include <atomic>
#include <cstdlib>
#include <string>

namespace cuda_morph_sim {
namespace {

std::atomic<int64_t> calls{0};

c10::DispatchKey host_key(c10::DispatchKeySet keys) {
  switch (keys.highestPriorityTypeId()) {
    case c10::DispatchKey::SparsePrivateUse1:
      return c10::DispatchKey::SparseCPU;
    case c10::DispatchKey::SparseCsrPrivateUse1:
      return c10::DispatchKey::SparseCsrCPU;
    case c10::DispatchKey::NestedTensorPrivateUse1:
      return c10::DispatchKey::NestedTensorCPU;
    default:
      return c10::DispatchKey::CPU;
  }
}

// The host's allocator speaks of the CPU; what ran out is the device's memory. Returns the size
// that was asked for, or 0 when the error is another one.
size_t host_out_of_memory(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  if (text.find("can't allocate memory") == std::string::npos) {
    return 0;
  }
  constexpr std::string_view kMarker = "you tried to allocate ";
  const auto position = text.find(kMarker);
  return position == std::string::npos
      ? 1
      : std::strtoull(text.c_str() + position + kMarker.size(), nullptr, 10);
}

[[noreturn]] void throw_no_kernel(const c10::OperatorHandle& op) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      false,
      "Could not run '",
      op.operator_name(),
      "' on the simulated device ",
      c10::DeviceTypeName(kDeviceType, /*lower_case=*/true),
      ": it runs the CPU's kernels on its own memory, and the CPU has none for this operator and "
      "layout.");
  __builtin_unreachable();
}

} // namespace

void run_on_host(
    const c10::OperatorHandle& op,
    const CallPlan& plan,
    c10::DispatchKeySet keys,
    torch::jit::Stack* stack) {
  calls.fetch_add(1, std::memory_order_relaxed);
  limits::raise_armed_fault();
  const auto target = host_key(keys);
  // Aliases carry no autograd keys; nothing below this point may look for them either.
  c10::impl::ExcludeDispatchKeyGuard below_autograd(
      c10::autograd_dispatch_keyset_with_ADInplaceOrView);
  CallFrame frame(plan, op.schema());
  frame.to_host(*stack);
  std::optional<DrawFromDevice> draw;
  if (plan.draws) {
    draw.emplace(frame.device());
  }
  try {
    op.redispatchBoxed(c10::DispatchKeySet({target, c10::DispatchKey::CPU}), stack);
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::Error& error) {
    if (const auto wanted = host_out_of_memory(error)) {
      memory::throw_out_of_memory(frame.device(), wanted);
    }
    if (!op.hasComputedKernelForDispatchKey(target)) {
      throw_no_kernel(op);
    }
    throw;
  }
  frame.to_device(*stack);
}

void run_unplanned_on_host(
    const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  run_on_host(op, CallPlan(op), keys, stack);
}

int64_t fallback_calls() noexcept {
  return calls.load(std::memory_order_relaxed);
}

} // namespace cuda_morph_sim
