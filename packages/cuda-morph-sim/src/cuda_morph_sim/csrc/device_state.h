// Which simulated devices exist and which one is current in this thread.
//
// Nothing here knows the device's name: the name belongs to PyTorch (it may be renamed, or masked
// as another one), so code compares device types and prints through c10::Device.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/DispatchKey.h>

#include <string>

namespace cuda_morph_sim {

inline constexpr c10::DeviceType kDeviceType = c10::DeviceType::PrivateUse1;
inline constexpr c10::DispatchKey kDispatchKey = c10::DispatchKey::PrivateUse1;
inline constexpr int kMaxDevices = 64;

namespace detail {
inline int device_count = 1;
inline thread_local c10::DeviceIndex current_device = 0;
} // namespace detail

// Called once, before the first device is used.
void set_device_count(int count);

inline c10::DeviceIndex device_count() noexcept {
  return static_cast<c10::DeviceIndex>(detail::device_count);
}

inline c10::DeviceIndex current_device() noexcept {
  return detail::current_device;
}

// Raises "invalid device ordinal" the way a CUDA call does.
[[noreturn]] void throw_invalid_ordinal(int index);

inline void check_ordinal(int index) {
  if (index < 0 || index >= detail::device_count) [[unlikely]] {
    throw_invalid_ordinal(index);
  }
}

// A device without an index means the current one.
inline c10::DeviceIndex resolve_index(c10::Device device) {
  if (!device.has_index()) {
    return current_device();
  }
  check_ordinal(device.index());
  return device.index();
}

inline void set_current_device(c10::DeviceIndex index) {
  check_ordinal(index);
  detail::current_device = index;
}

// The device's name in upper case as PyTorch knows it now, for messages such as
// "CUDA out of memory".
std::string display_name();

} // namespace cuda_morph_sim
