#include "streams.h"

#include "device_state.h"
#include "adapter_limits.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <atomic>
#include <chrono>

namespace cuda_morph_sim {
namespace {

using Clock = std::chrono::steady_clock;

// Work runs in program order on the calling thread, so a stream is only an identity: recording an
// event takes the time, and waiting for anything is over at once.
thread_local c10::StreamId current_streams[kMaxDevices] = {};
std::atomic<c10::StreamId> next_stream{1};

struct EventRecord {
  std::atomic<int64_t> nanoseconds{0};
};

int64_t event_time() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

c10::Stream make_stream(c10::DeviceIndex index, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kDeviceType, index), id);
}

class DeviceGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override {
    return kDeviceType;
  }
  c10::Device getDevice() const override {
    return {kDeviceType, current_device()};
  }
  c10::Device exchangeDevice(c10::Device device) const override {
    const auto previous = getDevice();
    setDevice(device);
    return previous;
  }
  void setDevice(c10::Device device) const override {
    if (device.has_index()) {
      set_current_device(device.index());
    }
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.has_index() && device.index() < device_count()) {
      detail::current_device = device.index();
    }
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    return device_count();
  }
  // Every dtype that the host has, less what a simulated adapter refuses.
  c10::DeviceCapability getDeviceCapability(c10::Device) const override {
    c10::DeviceCapability capability;
    capability.capability_data.capability_bits &= ~limits::absent_capability_bits();
    return capability;
  }

  c10::Stream getStream(c10::Device device) const override {
    const auto index = resolve_index(device);
    return make_stream(index, current_streams[index]);
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return make_stream(resolve_index(device), 0);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return getNewStream(device, 0);
  }
  c10::Stream getNewStream(c10::Device device, int) const override {
    return make_stream(resolve_index(device), next_stream++);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const auto previous = getStream(stream.device());
    current_streams[previous.device_index()] = stream.id();
    return previous;
  }
  bool queryStream(const c10::Stream&) const override {
    return true;
  }
  void synchronizeStream(const c10::Stream&) const override {
    limits::raise_armed_fault();
  }
  void synchronizeDevice(const c10::DeviceIndex index) const override {
    limits::raise_armed_fault();
    if (index >= 0) {
      check_ordinal(index);
    }
  }
  void* getStreamNativeHandle(const c10::Stream stream) const override {
    return reinterpret_cast<void*>(stream.id());
  }

  void record(
      void** event,
      const c10::Stream& stream,
      const c10::DeviceIndex device_index,
      const c10::EventFlag) const override {
    TORCH_CHECK(
        device_index < 0 || device_index == stream.device_index(),
        "Event device index ",
        static_cast<int>(device_index),
        " does not match recording stream's device index ",
        static_cast<int>(stream.device_index()),
        ".");
    if (*event == nullptr) {
      *event = new EventRecord();
    }
    static_cast<EventRecord*>(*event)->nanoseconds = event_time();
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override {
    return true;
  }
  void synchronizeEvent(void*) const override {
    limits::raise_armed_fault();
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<EventRecord*>(event);
  }
  double elapsedTime(void* start, void* end, const c10::DeviceIndex) const override {
    TORCH_CHECK(
        start != nullptr && end != nullptr,
        "Both events must be recorded before calculating elapsed time.");
    const auto difference = static_cast<EventRecord*>(end)->nanoseconds.load() -
        static_cast<EventRecord*>(start)->nanoseconds.load();
    return static_cast<double>(difference) / 1e6;
  }
};

} // namespace

void register_device_guard() {
  // The registry keeps the pointer for ever, by its own rule.
  c10::impl::DeviceGuardImplRegistrar(kDeviceType, new DeviceGuard());
}

} // namespace cuda_morph_sim
