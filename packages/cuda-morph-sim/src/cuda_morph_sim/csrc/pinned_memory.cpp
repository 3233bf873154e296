#include "pinned_memory.h"

#include <c10/core/impl/alloc_cpu.h>

#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>

namespace cuda_morph_sim {
namespace {

struct Registry {
  std::shared_mutex mutex;
  std::map<const char*, size_t> sizes;
};

// Never destroyed: pinned tensors may outlive static destructors.
Registry& registry = *new Registry();

void free_pinned(void* address) {
  if (address == nullptr) {
    return;
  }
  {
    std::unique_lock lock(registry.mutex);
    registry.sizes.erase(static_cast<const char*>(address));
  }
  c10::free_cpu(address);
}

class PinnedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t nbytes) override {
    void* address = nbytes == 0 ? nullptr : c10::alloc_cpu(nbytes);
    if (address != nullptr) {
      std::unique_lock lock(registry.mutex);
      registry.sizes.emplace(static_cast<const char*>(address), nbytes);
    }
    return {address, address, &free_pinned, c10::Device(c10::kCPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override {
    return &free_pinned;
  }

  void copy_data(void* destination, const void* source, std::size_t count) const override {
    std::memcpy(destination, source, count);
  }
};

PinnedAllocator& the_pinned_allocator = *new PinnedAllocator();

} // namespace

c10::Allocator* pinned_allocator() {
  return &the_pinned_allocator;
}

bool is_pinned_address(const void* address) {
  const auto* byte = static_cast<const char*>(address);
  std::shared_lock lock(registry.mutex);
  auto next = registry.sizes.upper_bound(byte);
  if (next == registry.sizes.begin()) {
    return false;
  }
  --next;
  return byte < next->first + next->second;
}

} // namespace cuda_morph_sim
