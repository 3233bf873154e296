// Random number generators of the simulated device.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/GeneratorImpl.h>

#include <mutex>

namespace cuda_morph_sim {

// A device generator that owns the CPU generator its kernels really draw from, so that drawing on
// the device never disturbs the host's own random numbers.
class DeviceGenerator final : public c10::GeneratorImpl {
 public:
  explicit DeviceGenerator(c10::DeviceIndex index);

  static c10::DeviceType device_type();

  void set_current_seed(uint64_t seed) override;
  void set_offset(uint64_t offset) override;
  uint64_t get_offset() const override;
  uint64_t current_seed() const override;
  uint64_t seed() override;
  void set_state(const c10::TensorImpl& state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;

  const at::Generator& host_generator() const noexcept {
    return host_;
  }

 private:
  DeviceGenerator* clone_impl() const override;

  at::Generator host_;
};

// One per device, made with PyTorch's default seed.
const at::Generator& default_generator(c10::DeviceIndex index);

at::Generator make_generator(c10::DeviceIndex index);

// The CPU generator behind a device generator.
const at::Generator& host_generator_of(const at::Generator& generator);

// While it lives, the host's default generator draws a device's numbers: some operators take no
// generator, and their CPU kernels always draw from that one.
class DrawFromDevice {
 public:
  explicit DrawFromDevice(c10::DeviceIndex index);
  ~DrawFromDevice();
  DrawFromDevice(const DrawFromDevice&) = delete;
  DrawFromDevice& operator=(const DrawFromDevice&) = delete;

 private:
  std::unique_lock<std::mutex> lock_;
  c10::DeviceIndex index_;
};

} // namespace cuda_morph_sim
