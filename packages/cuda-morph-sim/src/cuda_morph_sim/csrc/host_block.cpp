#include "host_block.h"

#include "guarded_memory.h"
#include "memory.h"

#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <cstring>
#include <mutex>

namespace cuda_morph_sim {
namespace {

// Adoption replaces a storage's DataPtr; two threads may meet the same foreign storage.
std::mutex& adoption_mutex = *new std::mutex();

} // namespace

HostBlock::HostBlock(
    c10::DataPtr&& host_data,
    size_t nbytes,
    c10::DeviceIndex device,
    size_t charged)
    : c10::StorageImpl(
          c10::StorageImpl::use_byte_size_t(),
          nbytes,
          std::move(host_data),
          c10::GetCPUAllocator(),
          /*resizable=*/true),
      device_(device),
      charged_(charged) {
  if (guarded_addresses()) {
    map_guard();
  }
}

HostBlock::~HostBlock() {
  unmap_guard();
  memory::release(device_, charged_);
}

void HostBlock::map_guard() {
  guard_nbytes_ = std::max<size_t>(nbytes(), 1);
  guard_address_ = reserve_guard(*this, guard_nbytes_);
}

void HostBlock::unmap_guard() noexcept {
  if (guard_address_ != nullptr) {
    release_guard(guard_address_, guard_nbytes_);
    guard_address_ = nullptr;
  }
}

void HostBlock::follow_resize() {
  const size_t now = nbytes();
  if (now != charged_) {
    memory::release(device_, charged_);
    charged_ = 0;
    memory::charge(device_, now);
    charged_ = now;
  }
  if (guarded_addresses()) {
    unmap_guard();
    map_guard();
  }
}

HostBlockRef allocate_block(size_t nbytes, c10::DeviceIndex device) {
  // The books come first: a refused allocation must not touch the host's memory.
  memory::charge(device, nbytes);
  c10::DataPtr data;
  try {
    data = c10::GetCPUAllocator()->allocate(nbytes);
  } catch (const std::exception&) {
    memory::release(device, nbytes);
    memory::throw_out_of_memory(device, nbytes);
  }
  return c10::make_intrusive<HostBlock>(std::move(data), nbytes, device, nbytes);
}

void release_block(void* block) {
  c10::raw::intrusive_ptr::decref(static_cast<HostBlock*>(block));
}

c10::DataPtr device_data_ptr(HostBlockRef block) {
  const c10::Device device(kDeviceType, block->device_index());
  void* address = block->device_address();
  return {address, block.release(), &release_block, device};
}

HostBlock* adopt_storage(c10::StorageImpl& storage, c10::DeviceIndex device, bool charged) {
  // A storage that one tensor holds was just made by this thread.
  std::unique_lock<std::mutex> lock(adoption_mutex, std::defer_lock);
  if (c10::raw::intrusive_ptr::use_count(&storage) > 1) {
    lock.lock();
  }
  if (auto* block = block_of(storage)) {
    return block;
  }
  const size_t nbytes = storage.nbytes();
  if (charged) {
    memory::charge(device, nbytes);
  }
  auto data = storage.set_data_ptr(c10::DataPtr());
  data.unsafe_set_device(c10::Device(c10::kCPU));
  if (guarded_addresses()) {
    if (auto bytes = host_bytes_behind(data.get())) {
      data = std::move(bytes);
    }
  }
  auto block = c10::make_intrusive<HostBlock>(std::move(data), nbytes, device, charged ? nbytes : 0);
  auto* raw = block.get();
  storage.set_data_ptr_noswap(device_data_ptr(std::move(block)));
  return raw;
}

void follow_block(c10::StorageImpl& storage, HostBlock& block) {
  block.follow_resize();
  auto kept = c10::intrusive_ptr<HostBlock>::reclaim_copy(&block);
  storage.set_data_ptr_noswap(device_data_ptr(std::move(kept)));
  storage.set_nbytes(block.nbytes());
}

void resize_device_storage(c10::StorageImpl& storage, size_t nbytes) {
  auto* old_block = block_of(storage);
  if (old_block == nullptr) {
    old_block = adopt_storage(storage, storage.device().index(), /*charged=*/false);
  }
  auto block = allocate_block(nbytes, old_block->device_index());
  const auto kept = std::min(nbytes, storage.nbytes());
  if (kept > 0) {
    std::memcpy(block->mutable_data(), old_block->data(), kept);
  }
  storage.set_data_ptr_noswap(device_data_ptr(std::move(block)));
  storage.set_nbytes(nbytes);
}

} // namespace cuda_morph_sim
