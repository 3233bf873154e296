#include "allocator.h"

#include "device_state.h"
#include "host_block.h"
#include "memory.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <cstring>

namespace cuda_morph_sim {
namespace {

class SimulatedAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t nbytes) override {
    return device_data_ptr(allocate_block(nbytes, current_device()));
  }

  void copy_data(void* destination, const void* source, std::size_t count) const override {
    std::memcpy(destination, source, count);
  }

  bool initialized() override {
    return true;
  }

  void emptyCache(c10::MempoolId_t) override {
    for (c10::DeviceIndex index = 0; index < device_count(); ++index) {
      memory::release_cached(index);
    }
  }

  // Streams run in program order on the host, so no block is ever reused too early.
  void recordStream(const c10::DataPtr&, c10::Stream) override {}

  memory::Stats getDeviceStats(c10::DeviceIndex device) override {
    check_ordinal(device);
    return memory::statistics(device);
  }

  void resetAccumulatedStats(c10::DeviceIndex device) override {
    check_ordinal(device);
    memory::reset_accumulated(device);
  }

  void resetPeakStats(c10::DeviceIndex device) override {
    check_ordinal(device);
    memory::reset_peaks(device);
  }

  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override {
    check_ordinal(device);
    const auto total = memory::limit(device);
    const auto used = static_cast<size_t>(memory::figures(device).reserved);
    return {total > used ? total - used : 0, total};
  }
};

SimulatedAllocator& the_device_allocator = *new SimulatedAllocator();

} // namespace

c10::Allocator* device_allocator() {
  return &the_device_allocator;
}

void register_allocator() {
  constexpr uint8_t kPriority = 10;
  c10::SetAllocator(kDeviceType, &the_device_allocator, kPriority);
}

} // namespace cuda_morph_sim
