#include "adapter_limits.h"

#include "device_argument.h"
#include "device_state.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_to_copy_ops.h>
#include <ATen/ops/copy_ops.h>
#include <ATen/ops/empty_ops.h>
#include <c10/core/DeviceCapability.h>
#include <c10/util/Exception.h>
#include <torch/csrc/Dtype.h>

#include <array>
#include <deque>
#include <mutex>

namespace cuda_morph_sim::limits {
namespace {

using c10::ScalarType;

constexpr size_t kDtypes = static_cast<size_t>(ScalarType::NumOptions);

// Set before the device is used; never destroyed, since kernels may run late.
struct Limits {
  std::array<std::string, kDtypes> refusals;
  std::array<ScalarType, kDtypes> narrower;
  std::string out_of_memory;
};
Limits& the_limits = *[] {
  auto* limits = new Limits();
  limits->narrower.fill(ScalarType::Undefined);
  return limits;
}();

std::mutex& faults_mutex = *new std::mutex();
std::deque<std::string>& faults = *new std::deque<std::string>();

size_t slot(ScalarType dtype) noexcept {
  return static_cast<size_t>(dtype);
}

bool read_text(PyObject* object, std::string* text) {
  Py_ssize_t size = 0;
  const char* bytes = PyUnicode_AsUTF8AndSize(object, &size);
  if (bytes == nullptr) {
    return false;
  }
  text->assign(bytes, static_cast<size_t>(size));
  return true;
}

bool read_dtype(PyObject* object, ScalarType* dtype) {
  if (!THPDtype_Check(object)) {
    PyErr_SetString(PyExc_TypeError, "expected a torch.dtype");
    return false;
  }
  *dtype = reinterpret_cast<THPDtype*>(object)->scalar_type;
  return true;
}

bool read_refusals(PyObject* mapping) {
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  Py_ssize_t position = 0;
  while (PyDict_Next(mapping, &position, &key, &value)) {
    ScalarType dtype{};
    if (!read_dtype(key, &dtype) || !read_text(value, &the_limits.refusals[slot(dtype)])) {
      return false;
    }
    detail::refuses = true;
  }
  return true;
}

bool read_narrower(PyObject* mapping) {
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  Py_ssize_t position = 0;
  while (PyDict_Next(mapping, &position, &key, &value)) {
    ScalarType wide{};
    if (!read_dtype(key, &wide) || !read_dtype(value, &the_limits.narrower[slot(wide)])) {
      return false;
    }
    detail::narrows = true;
  }
  return true;
}

PyObject* set_limits(PyObject*, PyObject* arguments) {
  PyObject* absent = nullptr;
  PyObject* narrowed = nullptr;
  PyObject* text = nullptr;
  if (!PyArg_ParseTuple(
          arguments,
          "O!O!U:set_limits",
          &PyDict_Type,
          &absent,
          &PyDict_Type,
          &narrowed,
          &text)) {
    return nullptr;
  }
  if (!read_refusals(absent) || !read_narrower(narrowed) ||
      !read_text(text, &the_limits.out_of_memory)) {
    return nullptr;
  }
  Py_RETURN_NONE;
}

PyObject* arm_fault(PyObject*, PyObject* text) {
  std::string message;
  if (!read_text(text, &message)) {
    return nullptr;
  }
  const std::lock_guard<std::mutex> guard(faults_mutex);
  faults.push_back(std::move(message));
  ++detail::armed;
  Py_RETURN_NONE;
}

PyObject* disarm_faults(PyObject*, PyObject*) {
  const std::lock_guard<std::mutex> guard(faults_mutex);
  const auto count = static_cast<long>(faults.size());
  faults.clear();
  detail::armed = 0;
  return PyLong_FromLong(count);
}

PyMethodDef functions[] = {
    {"set_limits",
     &set_limits,
     METH_VARARGS,
     "set_limits(absent, narrowed, out_of_memory)\n--\n\n"
     "Texts of refused dtypes, dtypes kept in narrower ones, and the text for a lack of memory."},
    {"arm_fault",
     &arm_fault,
     METH_O,
     "arm_fault(text)\n--\n\nRaise an error of this text at the next work on the device."},
    {"disarm_faults",
     &disarm_faults,
     METH_NOARGS,
     "disarm_faults()\n--\n\nForget faults that were not raised; returns their number."},
    {nullptr, nullptr, 0, nullptr}};

} // namespace

bool is_absent(ScalarType dtype) noexcept {
  return slot(dtype) < kDtypes && !the_limits.refusals[slot(dtype)].empty();
}

void throw_dtype(ScalarType dtype) {
  TORCH_CHECK(false, the_limits.refusals[slot(dtype)]);
}

void settle_dtype(at::Tensor& host_tensor, c10::DeviceIndex device) {
  const auto made = at::_ops::empty_memory_format::call(
      {0},
      host_tensor.scalar_type(),
      std::nullopt,
      c10::Device(kDeviceType, device),
      std::nullopt,
      std::nullopt);
  host_tensor = at::_ops::_to_copy::call(
      host_tensor,
      made.scalar_type(),
      std::nullopt,
      std::nullopt,
      std::nullopt,
      /*non_blocking=*/false,
      std::nullopt);
}

void narrow_values(const at::Tensor& host_tensor) {
  if (!host_tensor.defined() || host_tensor.layout() != at::kStrided) {
    return;
  }
  const auto dtype = the_limits.narrower[slot(host_tensor.scalar_type())];
  if (dtype == ScalarType::Undefined || host_tensor.numel() == 0 ||
      at::has_internal_overlap(host_tensor) == at::MemOverlap::Yes) {
    return;
  }
  const auto narrow = at::_ops::_to_copy::call(
      host_tensor,
      dtype,
      std::nullopt,
      std::nullopt,
      std::nullopt,
      /*non_blocking=*/false,
      std::nullopt);
  auto kept = host_tensor;
  at::_ops::copy_::call(kept, narrow, /*non_blocking=*/false);
}

void raise_armed_fault_now() {
  std::string text;
  {
    const std::lock_guard<std::mutex> guard(faults_mutex);
    if (faults.empty()) {
      return; // another thread got it
    }
    text = std::move(faults.front());
    faults.pop_front();
    --detail::armed;
  }
  TORCH_CHECK(false, text);
}

const std::string& out_of_memory_text() {
  return the_limits.out_of_memory;
}

uint64_t absent_capability_bits() noexcept {
  uint64_t bits = 0;
  uint64_t bit = 1;
#define CUDA_MORPH_SIM_BIT(_, name) \
  bits |= is_absent(ScalarType::name) ? bit : 0; \
  bit <<= 1;
  AT_FORALL_SCALAR_TYPES_WITH_COMPLEX_AND_QINTS(CUDA_MORPH_SIM_BIT)
#undef CUDA_MORPH_SIM_BIT
  return bits;
}

int add_limit_functions(PyObject* module) {
  return PyModule_AddFunctions(module, functions);
}

} // namespace cuda_morph_sim::limits
