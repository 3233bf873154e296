#include "device_state.h"

#include <c10/util/Exception.h>

namespace cuda_morph_sim {

void set_device_count(int count) {
  TORCH_CHECK(
      count >= 1 && count <= kMaxDevices,
      "the number of simulated devices must be between 1 and ",
      kMaxDevices,
      ", got ",
      count);
  detail::device_count = count;
}

std::string display_name() {
  return c10::DeviceTypeName(kDeviceType, /*lower_case=*/false);
}

void throw_invalid_ordinal(int index) {
  // cudaErrorInvalidDevice, so that code which looks at the number finds what it expects.
  constexpr int32_t kInvalidDevice = 101;
  throw c10::AcceleratorError(
      {__func__, __FILE__, static_cast<uint32_t>(__LINE__)},
      kInvalidDevice,
      c10::str(
          display_name(),
          " error: invalid device ordinal\nDevice ",
          index,
          " was requested, but ",
          detail::device_count,
          " simulated device(s) exist (CUDA_MORPH_SIM_DEVICES)."));
}

} // namespace cuda_morph_sim
