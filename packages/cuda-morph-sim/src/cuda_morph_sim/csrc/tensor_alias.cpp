#include "tensor_alias.h"

#include "allocator.h"
#include "host_block.h"
#include "layout_alias.h"

#include <c10/core/InferenceMode.h>
#include <c10/core/TensorImpl.h>

#include <typeinfo>

namespace cuda_morph_sim {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;
using c10::StorageImpl;
using c10::TensorImpl;

// PyTorch has no public way to move a tensor to another device in place, because devices normally
// do not share memory. Here they do; the members are reached by name through a derived class.
struct Members : TensorImpl {
  static DispatchKeySet& key_set(TensorImpl& impl) {
    return impl.*(&Members::key_set_);
  }
  static std::optional<c10::Device>& device(TensorImpl& impl) {
    return impl.*(&Members::device_opt_);
  }
};

StorageImpl* storage_of(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
}

DispatchKeySet device_keys(bool inference) {
  static const auto plain = DispatchKeySet(kDispatchKey) |
      c10::getAutocastRelatedKeySetFromBackend(c10::toBackendComponent(kDispatchKey));
  static const auto full = plain | DispatchKeySet(DispatchKey::ADInplaceOrView) |
      c10::getAutogradRelatedKeySetFromBackend(c10::toBackendComponent(kDispatchKey));
  return inference ? plain : full;
}

constexpr DispatchKeySet kMathBits(
    {DispatchKey::Conjugate, DispatchKey::Negative, DispatchKey::ZeroTensor});

void copy_metadata(const TensorImpl& from, TensorImpl& to) {
  to.set_sizes_and_strides(from.sizes(), from.strides(), from.storage_offset());
  if ((from.key_set() & kMathBits) != DispatchKeySet()) [[unlikely]] {
    auto& keys = Members::key_set(to);
    keys = keys | (from.key_set() & kMathBits);
  }
  if (from.is_wrapped_number()) {
    to.set_wrapped_number(true);
  }
}

HostBlock& block_of_tensor(const at::Tensor& device_tensor) {
  auto& storage = *storage_of(device_tensor);
  auto* block = block_of(storage);
  if (block == nullptr) [[unlikely]] {
    // Memory that came from elsewhere, e.g. through DLPack: it is not ours to count.
    block = adopt_storage(storage, device_tensor.device().index(), /*charged=*/false);
  }
  if (block->nbytes() != storage.nbytes()) [[unlikely]] {
    block->set_nbytes(storage.nbytes());
  }
  return *block;
}

c10::Storage host_storage(const at::Tensor& device_tensor) {
  auto& block = block_of_tensor(device_tensor);
  return c10::Storage(c10::intrusive_ptr<StorageImpl>::reclaim_copy(&block));
}

bool same_geometry(const TensorImpl& a, const TensorImpl& b) {
  return a.sizes() == b.sizes() && a.strides() == b.strides() &&
      a.storage_offset() == b.storage_offset();
}

// The device storage behind a CPU storage: an argument's own, or the CPU storage itself, which
// becomes a device storage.
c10::Storage device_storage(StorageImpl& host, Aliases& aliases, c10::DeviceIndex device) {
  for (const auto& alias : aliases) {
    if (alias.host_tensor.has_storage() && storage_of(alias.host_tensor) == &host) {
      return alias.device_tensor.unsafeGetTensorImpl()->unsafe_storage();
    }
  }
  if (typeid(host) == typeid(HostBlock)) [[unlikely]] {
    // Part of a sparse argument, or an alias that outlives its call: a second device storage over
    // the same block.
    auto block = HostBlockRef::reclaim_copy(static_cast<HostBlock*>(&host));
    const auto nbytes = block->nbytes();
    return c10::Storage(c10::make_intrusive<StorageImpl>(
        StorageImpl::use_byte_size_t(),
        nbytes,
        device_data_ptr(std::move(block)),
        device_allocator(),
        /*resizable=*/true));
  }
  if (host.device_type() != kDeviceType) {
    adopt_storage(host, device, /*charged=*/true);
    host.set_allocator(device_allocator());
  }
  return c10::Storage(c10::intrusive_ptr<StorageImpl>::reclaim_copy(&host));
}

at::Tensor wrap(c10::Storage&& storage, const TensorImpl& geometry) {
  auto impl = c10::make_intrusive<TensorImpl>(
      std::move(storage), DispatchKeySet(kDispatchKey), geometry.dtype());
  copy_metadata(geometry, *impl);
  return at::Tensor(std::move(impl));
}

} // namespace

at::Tensor make_host_alias(const at::Tensor& device_tensor) {
  if (has_other_layout(*device_tensor.unsafeGetTensorImpl())) [[unlikely]] {
    return layout_host_alias(device_tensor);
  }
  const auto& source = *device_tensor.unsafeGetTensorImpl();
  auto impl = c10::make_intrusive<TensorImpl>(
      TensorImpl::VIEW,
      host_storage(device_tensor),
      DispatchKeySet(DispatchKey::CPU),
      source.dtype());
  copy_metadata(source, *impl);
  return at::Tensor(std::move(impl));
}

at::Tensor make_lasting_host_alias(const at::Tensor& device_tensor) {
  if (has_other_layout(*device_tensor.unsafeGetTensorImpl())) [[unlikely]] {
    return layout_host_alias(device_tensor); // which has nothing of one call only
  }
  const auto& source = *device_tensor.unsafeGetTensorImpl();
  auto impl = c10::make_intrusive<TensorImpl>(
      host_storage(device_tensor), DispatchKeySet(DispatchKey::CPU), source.dtype());
  copy_metadata(source, *impl);
  return at::Tensor(std::move(impl));
}

const at::Tensor& host_alias(at::Tensor device_tensor, Aliases& aliases, bool lasting) {
  for (const auto& alias : aliases) {
    if (alias.device_tensor.is_same(device_tensor)) {
      return alias.host_tensor;
    }
  }
  auto host = lasting ? make_lasting_host_alias(device_tensor) : make_host_alias(device_tensor);
  const void* address = host.has_storage() ? storage_of(host)->data() : nullptr;
  aliases.push_back({std::move(device_tensor), std::move(host), address});
  return aliases.back().host_tensor;
}

at::Tensor to_device(at::Tensor&& host_tensor, Aliases& aliases, c10::DeviceIndex device) {
  if (!host_tensor.defined()) {
    return std::move(host_tensor);
  }
  for (const auto& alias : aliases) {
    if (alias.host_tensor.is_same(host_tensor)) {
      return alias.device_tensor;
    }
  }
  auto& impl = *host_tensor.unsafeGetTensorImpl();
  if (impl.device_type() != c10::DeviceType::CPU) {
    return std::move(host_tensor);
  }
  if (has_other_layout(impl)) [[unlikely]] {
    return layout_to_device(std::move(host_tensor), aliases, device);
  }
  auto storage = device_storage(*storage_of(host_tensor), aliases, device);
  const bool own_storage = storage.unsafeGetStorageImpl() == storage_of(host_tensor);
  const bool inference = c10::InferenceMode::is_enabled();
  // A fresh tensor that nobody else holds changes sides in place.
  if (own_storage && host_tensor.use_count() == 1 && impl.is_inference() == inference &&
      impl.autograd_meta() == nullptr) [[likely]] {
    auto& keys = Members::key_set(impl);
    keys = device_keys(inference) | (keys & kMathBits);
    Members::device(impl) = storage.device();
    return std::move(host_tensor);
  }
  return wrap(std::move(storage), impl);
}

void follow_written_aliases(Aliases& aliases) {
  for (auto& alias : aliases) {
    auto& device_impl = *alias.device_tensor.unsafeGetTensorImpl();
    const auto& host_impl = *alias.host_tensor.unsafeGetTensorImpl();
    if (has_other_layout(host_impl)) [[unlikely]] {
      layout_follow(alias.device_tensor, alias.host_tensor, aliases);
      continue;
    }
    auto& device = *storage_of(alias.device_tensor);
    auto& host = *storage_of(alias.host_tensor);
    auto* block = block_of(device);
    if (&host != block) [[unlikely]] {
      // The kernel gave its output another storage altogether (set_).
      const auto index = device.device().index();
      device_impl.set_storage_keep_dtype(device_storage(host, aliases, index));
    } else if (
        host.data() != alias.host_address || device.nbytes() != host.nbytes()) [[unlikely]] {
      if (block->device_address() != device.data_ptr().get() ||
          device.nbytes() != host.nbytes()) {
        follow_block(device, *block);
      }
    }
    if (!same_geometry(device_impl, host_impl)) [[unlikely]] {
      device_impl.set_sizes_and_strides(
          host_impl.sizes(), host_impl.strides(), host_impl.storage_offset());
    }
  }
}

} // namespace cuda_morph_sim
