#include "generator.h"

#include "device_state.h"

#include <ATen/CPUGeneratorImpl.h>

#include <vector>

namespace cuda_morph_sim {
namespace {

std::mutex& draw_mutex = *new std::mutex();

void exchange(at::CPUGeneratorImpl& a, at::CPUGeneratorImpl& b) {
  std::scoped_lock lock(a.mutex_, b.mutex_);
  const auto engine = a.engine();
  const auto float_sample = a.next_float_normal_sample();
  const auto double_sample = a.next_double_normal_sample();
  a.set_engine(b.engine());
  a.set_next_float_normal_sample(b.next_float_normal_sample());
  a.set_next_double_normal_sample(b.next_double_normal_sample());
  b.set_engine(engine);
  b.set_next_float_normal_sample(float_sample);
  b.set_next_double_normal_sample(double_sample);
}

at::CPUGeneratorImpl& host_default() {
  return *at::check_generator<at::CPUGeneratorImpl>(at::detail::getDefaultCPUGenerator());
}

at::CPUGeneratorImpl& behind(c10::DeviceIndex index) {
  return *at::check_generator<at::CPUGeneratorImpl>(host_generator_of(default_generator(index)));
}

} // namespace

DeviceGenerator::DeviceGenerator(c10::DeviceIndex index)
    : c10::GeneratorImpl(c10::Device(kDeviceType, index), c10::DispatchKeySet(kDispatchKey)),
      host_(at::detail::createCPUGenerator()) {}

c10::DeviceType DeviceGenerator::device_type() {
  return kDeviceType;
}

void DeviceGenerator::set_current_seed(uint64_t seed) {
  host_.set_current_seed(seed);
}

// The host's generator has no offset; zero is the one that changes nothing.
void DeviceGenerator::set_offset(uint64_t offset) {
  TORCH_CHECK(offset == 0, "the simulated device's generators have no offset, got ", offset);
}

uint64_t DeviceGenerator::get_offset() const {
  return 0;
}

uint64_t DeviceGenerator::current_seed() const {
  return host_.current_seed();
}

uint64_t DeviceGenerator::seed() {
  return host_.seed();
}

void DeviceGenerator::set_state(const c10::TensorImpl& state) {
  host_.unsafeGetGeneratorImpl()->set_state(state);
}

c10::intrusive_ptr<c10::TensorImpl> DeviceGenerator::get_state() const {
  return host_.unsafeGetGeneratorImpl()->get_state();
}

DeviceGenerator* DeviceGenerator::clone_impl() const {
  auto* copy = new DeviceGenerator(device_.index());
  copy->host_ = host_.clone();
  return copy;
}

const at::Generator& default_generator(c10::DeviceIndex index) {
  // Never destroyed, like every default generator of PyTorch.
  static const auto& generators = *[] {
    auto* made = new std::vector<at::Generator>();
    for (c10::DeviceIndex i = 0; i < device_count(); ++i) {
      made->push_back(at::make_generator<DeviceGenerator>(i));
    }
    return made;
  }();
  return generators[resolve_index(c10::Device(kDeviceType, index))];
}

at::Generator make_generator(c10::DeviceIndex index) {
  return at::make_generator<DeviceGenerator>(resolve_index(c10::Device(kDeviceType, index)));
}

DrawFromDevice::DrawFromDevice(c10::DeviceIndex index) : lock_(draw_mutex), index_(index) {
  exchange(host_default(), behind(index_));
}

DrawFromDevice::~DrawFromDevice() {
  exchange(host_default(), behind(index_));
}

const at::Generator& host_generator_of(const at::Generator& generator) {
  return static_cast<const DeviceGenerator*>(generator.unsafeGetGeneratorImpl())
      ->host_generator();
}

} // namespace cuda_morph_sim
