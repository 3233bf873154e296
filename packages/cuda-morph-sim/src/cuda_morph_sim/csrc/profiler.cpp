#include "device_state.h"
#include "registration.h"

#include <torch/csrc/profiler/stubs/base.h>

#include <chrono>

namespace cuda_morph_sim {
namespace {

using torch::profiler::impl::ProfilerStubs;
using torch::profiler::impl::ProfilerVoidEventStub;

int64_t profiler_time() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Work runs on the calling thread, so the device's clock is the host's.
class Stubs final : public ProfilerStubs {
 public:
  void record(
      c10::DeviceIndex* device, ProfilerVoidEventStub* event, int64_t* cpu_ns) const override {
    const auto time = profiler_time();
    if (device != nullptr) {
      *device = current_device();
    }
    *event = std::make_shared<int64_t>(time);
    if (cpu_ns != nullptr) {
      *cpu_ns = time;
    }
  }
  float elapsed(
      const ProfilerVoidEventStub* start, const ProfilerVoidEventStub* end) const override {
    const auto difference =
        *static_cast<int64_t*>(end->get()) - *static_cast<int64_t*>(start->get());
    return static_cast<float>(difference) / 1000.0F;
  }
  void mark(const char*) const override {}
  void rangePush(const char*) const override {}
  void rangePop() const override {}
  bool enabled() const override {
    return true;
  }
  void onEachDevice(std::function<void(int)> visit) const override {
    for (int index = 0; index < device_count(); ++index) {
      visit(index);
    }
  }
  void synchronize() const override {}
};

} // namespace

void register_profiler() {
  torch::profiler::impl::registerPrivateUse1Methods(new Stubs());
}

} // namespace cuda_morph_sim
