#include "hooks.h"

#include "device_state.h"
#include "generator.h"
#include "host_block.h"
#include "pinned_memory.h"

#include <ATen/detail/PrivateUse1HooksInterface.h>

namespace cuda_morph_sim {
namespace {

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override {
    return true;
  }
  bool isAvailable() const override {
    return device_count() > 0;
  }
  bool hasPrimaryContext(c10::DeviceIndex) const override {
    return true;
  }
  void init() const override {}

  c10::DeviceIndex deviceCount() const override {
    return device_count();
  }
  c10::DeviceIndex getCurrentDevice() const override {
    return current_device();
  }
  void setCurrentDevice(c10::DeviceIndex device) const override {
    set_current_device(device);
  }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    const auto previous = current_device();
    set_current_device(device);
    return previous;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    const auto previous = current_device();
    if (device >= 0) {
      set_current_device(device);
    }
    return previous;
  }

  bool isPinnedPtr(const void* address) const override {
    return is_pinned_address(address);
  }
  c10::Allocator* getPinnedMemoryAllocator() const override {
    return pinned_allocator();
  }
  c10::Device getDeviceFromPtr(void*) const override {
    return {kDeviceType, current_device()};
  }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override {
    return default_generator(index);
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    return make_generator(index);
  }

  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t nbytes) const override {
    resize_device_storage(*storage.unsafeGetStorageImpl(), nbytes);
  }
};

} // namespace

void register_hooks() {
  at::RegisterPrivateUse1HooksInterface(new Hooks());
}

} // namespace cuda_morph_sim
