#include "allocator.h"
#include "host_block.h"
#include "kernels.h"
#include "adapter_limits.h"
#include "tensor_alias.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_local_scalar_dense_ops.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/copy_ops.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>

namespace cuda_morph_sim {
namespace {

using at::IntArrayRef;
using at::Tensor;

constexpr c10::DispatchKeySet kKeys(kDispatchKey);

// PyTorch's allocator interface allocates on the current device.
class OnDevice {
 public:
  explicit OnDevice(c10::DeviceIndex index) : previous_(detail::current_device) {
    detail::current_device = index;
  }
  ~OnDevice() {
    detail::current_device = previous_;
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  c10::DeviceIndex previous_;
};

c10::DeviceIndex index_for(std::optional<c10::Device> device) {
  return device ? resolve_index(*device) : current_device();
}

void check_options(std::optional<at::Layout> layout, std::optional<bool> pin_memory) {
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
  TORCH_CHECK_NOT_IMPLEMENTED(
      layout.value_or(at::kStrided) == at::kStrided,
      "empty: only strided tensors are made here, got ",
      *layout);
}

Tensor empty(
    IntArrayRef size,
    std::optional<at::ScalarType> dtype,
    std::optional<at::Layout> layout,
    std::optional<c10::Device> device,
    std::optional<bool> pin_memory,
    std::optional<at::MemoryFormat> memory_format) {
  check_options(layout, pin_memory);
  const auto wanted = at::dtype_or_default(dtype);
  limits::raise_armed_fault();
  limits::check_dtype(wanted);
  OnDevice guard(index_for(device));
  return at::detail::empty_generic(size, device_allocator(), kKeys, wanted, memory_format);
}

Tensor empty_strided(
    IntArrayRef size,
    IntArrayRef stride,
    std::optional<at::ScalarType> dtype,
    std::optional<at::Layout> layout,
    std::optional<c10::Device> device,
    std::optional<bool> pin_memory) {
  check_options(layout, pin_memory);
  const auto wanted = at::dtype_or_default(dtype);
  limits::raise_armed_fault();
  limits::check_dtype(wanted);
  OnDevice guard(index_for(device));
  return at::detail::empty_strided_generic(size, stride, device_allocator(), kKeys, wanted);
}

Tensor on_host(const Tensor& tensor) {
  return is_on_device(tensor) ? make_host_alias(tensor) : tensor;
}

void copy(const Tensor& destination, const Tensor& source, bool non_blocking) {
  limits::raise_armed_fault();
  auto host_destination = on_host(destination);
  at::_ops::copy_::call(host_destination, on_host(source), non_blocking);
  if (is_on_device(destination)) {
    limits::narrow(host_destination);
  }
}

Tensor& copy_(Tensor& self, const Tensor& source, bool non_blocking) {
  if (!self.is_same(source)) {
    copy(self, source, non_blocking);
  }
  return self;
}

Tensor copy_from(const Tensor& source, const Tensor& destination, bool non_blocking) {
  copy(destination, source, non_blocking);
  return destination;
}

Tensor copy_from_and_resize(const Tensor& source, const Tensor& destination) {
  destination.resize_(source.sizes());
  copy(destination, source, /*non_blocking=*/false);
  return destination;
}

at::Scalar local_scalar_dense(const Tensor& self) {
  return at::_ops::_local_scalar_dense::call(make_host_alias(self));
}

c10::DimVector contiguous_strides(IntArrayRef size) {
  c10::DimVector strides(size.size());
  int64_t step = 1;
  for (size_t i = size.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<int64_t>(size[i], 1);
  }
  return strides;
}

size_t bytes_needed(IntArrayRef size, IntArrayRef strides, int64_t offset, size_t itemsize) {
  return at::detail::computeStorageNbytes(size, strides, itemsize, offset);
}

Tensor& set_storage(
    Tensor& self, c10::Storage source, int64_t offset, IntArrayRef size, IntArrayRef stride) {
  TORCH_CHECK(
      source.device() == self.device(),
      "Attempted to set the storage of a tensor on device \"",
      self.device(),
      "\" to a storage on different device \"",
      source.device(),
      "\".  This is no longer allowed; the devices must match.");
  TORCH_CHECK(offset >= 0, "Tensor: invalid storage offset ", offset);
  auto strides = stride.size() == size.size() ? c10::DimVector(stride.begin(), stride.end())
                                              : contiguous_strides(size);
  const auto needed = bytes_needed(size, strides, offset, self.dtype().itemsize());
  if (needed > source.nbytes()) {
    TORCH_CHECK(source.resizable(), "Trying to resize storage that is not resizable");
    resize_device_storage(*source.unsafeGetStorageImpl(), needed);
  }
  auto* impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(source));
  impl->set_sizes_and_strides(size, strides, offset);
  return self;
}

Tensor& set_whole_storage(Tensor& self, c10::Storage source) {
  const auto count = static_cast<int64_t>(source.nbytes() / self.dtype().itemsize());
  return set_storage(self, std::move(source), 0, {count}, {});
}

Tensor& set_tensor(Tensor& self, const Tensor& source) {
  auto* impl = self.unsafeGetTensorImpl();
  if (impl != source.unsafeGetTensorImpl()) {
    return set_storage(
        self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
  }
  return self;
}

Tensor& set_empty(Tensor& self) {
  const auto index = self.device().index();
  c10::Storage storage(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(),
      0,
      device_data_ptr(allocate_block(0, index)),
      device_allocator(),
      /*resizable=*/true));
  return set_storage(self, std::move(storage), 0, {0}, {});
}

// Work runs in program order, so memory is never reused while a stream still needs it.
void record_stream(Tensor&, c10::Stream) {}

} // namespace

void register_memory_kernels(torch::Library& library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("copy_", &copy_);
  library.impl("_copy_from", &copy_from);
  library.impl("_copy_from_and_resize", &copy_from_and_resize);
  library.impl("_local_scalar_dense", &local_scalar_dense);
  library.impl("set_.source_Storage_storage_offset", &set_storage);
  library.impl("set_.source_Storage", &set_whole_storage);
  library.impl("set_.source_Tensor", &set_tensor);
  library.impl("set_", &set_empty);
  library.impl("record_stream", &record_stream);
  library.impl("as_strided", &at::native::as_strided_tensorimpl);
  library.impl("view", &at::native::view);
  library.impl("_reshape_alias", &at::native::_reshape_alias);
  library.impl("unfold", &at::native::unfold);
}

} // namespace cuda_morph_sim
