// Memory of a simulated device, seen from the host.
//
// Every device storage is backed by a HostBlock: a CPU-tagged storage over the same bytes. The
// device storage's DataPtr owns a reference to its block, so a CPU tensor that aliases the block
// keeps the bytes alive by itself, and the fallback finds the host view of any device tensor with
// one pointer comparison and no copy.
#pragma once

#include "device_state.h"

#include <c10/core/StorageImpl.h>

namespace cuda_morph_sim {

class HostBlock final : public c10::StorageImpl {
 public:
  // `charged` bytes have been counted by the caller and are given back with the block.
  HostBlock(c10::DataPtr&& host_data, size_t nbytes, c10::DeviceIndex device, size_t charged);
  ~HostBlock() override;

  // The address that device tensors show. In debug mode it is not readable from the host.
  void* device_address() noexcept {
    return guard_address_ != nullptr ? guard_address_ : _mutable_data_ptr_no_checks().get();
  }

  // Brings books and device address up to date after a CPU kernel has replaced the bytes.
  void follow_resize();

  c10::DeviceIndex device_index() const noexcept {
    return device_;
  }

 private:
  void map_guard();
  void unmap_guard() noexcept;

  c10::DeviceIndex device_;
  size_t charged_;
  void* guard_address_ = nullptr;
  size_t guard_nbytes_ = 0;
};

using HostBlockRef = c10::intrusive_ptr<HostBlock>;

// Fresh memory; counted against the device's limit.
HostBlockRef allocate_block(size_t nbytes, c10::DeviceIndex device);

// A device-tagged DataPtr that owns one reference to the block.
c10::DataPtr device_data_ptr(HostBlockRef block);

void release_block(void* block);

// The block behind a device storage, or null for a storage that was made elsewhere (DLPack).
inline HostBlock* block_of(const c10::StorageImpl& storage) noexcept {
  const auto& data = const_cast<c10::StorageImpl&>(storage)._mutable_data_ptr_no_checks();
  return data.get_deleter() == &release_block ? static_cast<HostBlock*>(data.get_context())
                                              : nullptr;
}

// Gives a storage a block of its own and makes it a device storage. `charged` says whether its
// bytes count as device memory.
HostBlock* adopt_storage(c10::StorageImpl& storage, c10::DeviceIndex device, bool charged);

// The device storage follows its block after a CPU kernel resized the block.
void follow_block(c10::StorageImpl& storage, HostBlock& block);

// Changes the size of a device storage, keeping its contents.
void resize_device_storage(c10::StorageImpl& storage, size_t nbytes);

} // namespace cuda_morph_sim
