#include "guarded_memory.h"

#include <sys/mman.h>

#include <map>
#include <mutex>

namespace cuda_morph_sim {
namespace {

bool enabled_ = false;

struct Ranges {
  std::mutex mutex;
  std::map<const char*, std::pair<HostBlock*, size_t>> blocks;
};

// Never destroyed: tensors may be dropped after static destructors have run.
Ranges& ranges = *new Ranges();

} // namespace

void set_guarded_addresses(bool enabled) {
  enabled_ = enabled;
}

bool guarded_addresses() noexcept {
  return enabled_;
}

void* reserve_guard(HostBlock& block, size_t nbytes) {
  void* address =
      mmap(nullptr, nbytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) {
    return nullptr;
  }
  std::lock_guard<std::mutex> lock(ranges.mutex);
  ranges.blocks[static_cast<const char*>(address)] = {&block, nbytes};
  return address;
}

void release_guard(void* address, size_t nbytes) noexcept {
  {
    std::lock_guard<std::mutex> lock(ranges.mutex);
    ranges.blocks.erase(static_cast<const char*>(address));
  }
  munmap(address, nbytes);
}

c10::DataPtr host_bytes_behind(const void* address) {
  const auto* byte = static_cast<const char*>(address);
  std::lock_guard<std::mutex> lock(ranges.mutex);
  auto next = ranges.blocks.upper_bound(byte);
  if (next == ranges.blocks.begin()) {
    return {};
  }
  --next;
  const auto [block, nbytes] = next->second;
  const auto offset = static_cast<size_t>(byte - next->first);
  if (offset >= nbytes) {
    return {};
  }
  auto* bytes = static_cast<char*>(block->_mutable_data_ptr_no_checks().get()) + offset;
  auto owner = HostBlockRef::reclaim_copy(block);
  return {bytes, owner.release(), &release_block, c10::Device(c10::kCPU)};
}

} // namespace cuda_morph_sim
