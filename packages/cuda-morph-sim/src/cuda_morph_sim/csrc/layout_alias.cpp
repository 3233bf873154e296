#include "layout_alias.h"

#include <ATen/NestedTensorImpl.h>
#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>

namespace cuda_morph_sim {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;

[[noreturn]] void refuse(const at::Tensor& tensor) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      false,
      "The simulated device has dense, sparse and nested tensors; this one has layout ",
      tensor.layout(),
      " and dtype ",
      tensor.scalar_type(),
      ".");
  __builtin_unreachable();
}

at::SparseTensorImpl& coo(const at::Tensor& tensor) {
  return *static_cast<at::SparseTensorImpl*>(tensor.unsafeGetTensorImpl());
}

at::SparseCsrTensorImpl& compressed(const at::Tensor& tensor) {
  return *static_cast<at::SparseCsrTensorImpl*>(tensor.unsafeGetTensorImpl());
}

at::native::NestedTensorImpl& nested(const at::Tensor& tensor) {
  return *static_cast<at::native::NestedTensorImpl*>(tensor.unsafeGetTensorImpl());
}

bool is_compressed(const at::Tensor& tensor) {
  const auto layout = tensor.layout();
  return layout == at::kSparseCsr || layout == at::kSparseCsc || layout == at::kSparseBsr ||
      layout == at::kSparseBsc;
}

at::Tensor make_coo(
    DispatchKey key, const at::Tensor& like, const at::Tensor& indices, const at::Tensor& values) {
  const auto& source = coo(like);
  auto impl = c10::make_intrusive<at::SparseTensorImpl>(DispatchKeySet(key), like.dtype());
  impl->resize_(source.sparse_dim(), source.dense_dim(), like.sizes());
  impl->set_indices_and_values_unsafe(indices, values);
  impl->set_coalesced(source.coalesced());
  impl->set_nnz_and_narrow(source.nnz());
  return at::Tensor(std::move(impl));
}

at::Tensor make_compressed(
    DispatchKey key,
    c10::Device device,
    const at::Tensor& like,
    const at::Tensor& rows,
    const at::Tensor& columns,
    const at::Tensor& values) {
  auto impl = c10::make_intrusive<at::SparseCsrTensorImpl>(
      DispatchKeySet(key), device, like.layout(), like.dtype());
  impl->set_member_tensors(rows, columns, values, like.sizes());
  return at::Tensor(std::move(impl));
}

// Sizes, strides and offsets of a nested tensor are host data on every device.
at::Tensor make_nested(const at::Tensor& like, const at::Tensor& buffer) {
  const auto& source = nested(like);
  return at::detail::make_tensor<at::native::NestedTensorImpl>(
      buffer,
      source.get_nested_sizes(),
      source.get_nested_strides(),
      source.get_storage_offsets());
}

} // namespace

at::Tensor layout_host_alias(const at::Tensor& device_tensor) {
  if (device_tensor.is_nested()) {
    return make_nested(
        device_tensor,
        make_lasting_host_alias(nested(device_tensor).get_unsafe_storage_as_tensor()));
  }
  if (device_tensor.layout() == at::kSparse) {
    const auto& source = coo(device_tensor);
    return make_coo(
        DispatchKey::SparseCPU,
        device_tensor,
        make_lasting_host_alias(source.indices()),
        make_lasting_host_alias(source.values()));
  }
  if (is_compressed(device_tensor)) {
    const auto& source = compressed(device_tensor);
    return make_compressed(
        DispatchKey::SparseCsrCPU,
        c10::Device(c10::kCPU),
        device_tensor,
        make_lasting_host_alias(source.compressed_indices()),
        make_lasting_host_alias(source.plain_indices()),
        make_lasting_host_alias(source.values()));
  }
  refuse(device_tensor);
}

at::Tensor layout_to_device(
    at::Tensor&& host_tensor, Aliases& aliases, c10::DeviceIndex device) {
  const auto part = [&](const at::Tensor& tensor) {
    return to_device(at::Tensor(tensor), aliases, device);
  };
  if (host_tensor.is_nested()) {
    return make_nested(host_tensor, part(nested(host_tensor).get_unsafe_storage_as_tensor()));
  }
  if (host_tensor.layout() == at::kSparse) {
    const auto& source = coo(host_tensor);
    const auto like = host_tensor;
    return make_coo(
        DispatchKey::SparsePrivateUse1, like, part(source.indices()), part(source.values()));
  }
  if (is_compressed(host_tensor)) {
    const auto& source = compressed(host_tensor);
    return make_compressed(
        DispatchKey::SparseCsrPrivateUse1,
        c10::Device(kDeviceType, device),
        host_tensor,
        part(source.compressed_indices()),
        part(source.plain_indices()),
        part(source.values()));
  }
  refuse(host_tensor);
}

void layout_follow(
    const at::Tensor& device_tensor, const at::Tensor& host_tensor, Aliases& aliases) {
  const auto device = device_tensor.device().index();
  const auto part = [&](const at::Tensor& tensor) {
    return to_device(at::Tensor(tensor), aliases, device);
  };
  if (device_tensor.layout() == at::kSparse) {
    auto& target = coo(device_tensor);
    const auto& source = coo(host_tensor);
    target.raw_resize_(source.sparse_dim(), source.dense_dim(), host_tensor.sizes());
    target.set_indices_and_values_unsafe(part(source.indices()), part(source.values()));
    target.set_coalesced(source.coalesced());
    target.set_nnz_and_narrow(source.nnz());
  } else if (is_compressed(device_tensor)) {
    const auto& source = compressed(host_tensor);
    compressed(device_tensor)
        .set_member_tensors(
            part(source.compressed_indices()),
            part(source.plain_indices()),
            part(source.values()),
            host_tensor.sizes());
  }
}

} // namespace cuda_morph_sim
