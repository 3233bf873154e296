// What a simulated adapter does otherwise than the plain device: dtypes that it refuses or stores
// narrower, the text of its out-of-memory error, and failures that are raised on demand.
#pragma once

#include <ATen/core/TensorBody.h>
#include <c10/core/ScalarType.h>
#include <torch/csrc/python_headers.h>

#include <atomic>
#include <string>

namespace cuda_morph_sim::limits {

namespace detail {
inline std::atomic<bool> refuses{false};
inline std::atomic<bool> narrows{false};
inline std::atomic<int> armed{0};
} // namespace detail

[[noreturn]] void throw_dtype(c10::ScalarType dtype);
bool is_absent(c10::ScalarType dtype) noexcept;

// Raises when the device has no tensors of this dtype.
inline void check_dtype(c10::ScalarType dtype) {
  if (detail::refuses.load(std::memory_order_relaxed) && is_absent(dtype)) [[unlikely]] {
    throw_dtype(dtype);
  }
}

// Lets a result of a dtype that the device lacks be what an allocation of it there would be: an
// error, or the dtype that an activation puts in its place.
void settle_dtype(at::Tensor& host_tensor, c10::DeviceIndex device);

inline void settle(at::Tensor& host_tensor, c10::DeviceIndex device) {
  if (detail::refuses.load(std::memory_order_relaxed) && host_tensor.defined() &&
      is_absent(host_tensor.scalar_type())) [[unlikely]] {
    settle_dtype(host_tensor, device);
  }
}

// Takes a host tensor's values through the narrower dtype in which the device keeps them.
void narrow_values(const at::Tensor& host_tensor);

inline void narrow(const at::Tensor& host_tensor) {
  if (detail::narrows.load(std::memory_order_relaxed)) [[unlikely]] {
    narrow_values(host_tensor);
  }
}

void raise_armed_fault_now();

// Raises the failure that was ordered for the next work on the device, if one was.
inline void raise_armed_fault() {
  if (detail::armed.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    raise_armed_fault_now();
  }
}

// The adapter's text for a lack of memory; empty: the plain device's own.
const std::string& out_of_memory_text();

// Bits of c10::DeviceCapability for the dtypes that are absent.
uint64_t absent_capability_bits() noexcept;

int add_limit_functions(PyObject* module);

} // namespace cuda_morph_sim::limits
