#include "collectives.h"

#include "device_argument.h"
#include "fallback.h"
#include "process_group.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>

namespace cuda_morph_sim {
namespace {

class Silence final : public c10::WarningHandler {
 public:
  void process(const c10::Warning&) override {}
};

// PyTorch hands the device's tensors to the group's backend for this device type. That is right,
// unless the backend is gloo, which then gets the same bytes as host tensors.
class CollectiveKernel final : public c10::OperatorKernel {
 public:
  explicit CollectiveKernel(const c10::OperatorHandle& op)
      : host_(op), original_(op.getComputedKernelForDispatchKey(kDispatchKey)) {
    const auto& arguments = op.schema().arguments();
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].name() == "process_group") {
        from_end_ = arguments.size() - i;
      }
    }
  }

  void operator()(
      const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    if (is_gloo((*stack)[stack->size() - from_end_])) {
      host_(op, keys, stack);
    } else {
      original_.callBoxed(op, keys, stack);
    }
  }

 private:
  static bool is_gloo(const c10::IValue& group) {
    return group.toCustomClass<c10d::ProcessGroup>()->getBackend(kDeviceType)->getBackendName() ==
        "gloo";
  }

  HostKernel host_;
  c10::SafeKernelFunction original_;
  size_t from_end_ = 0;
};

bool takes_a_group(const c10::FunctionSchema& schema) {
  for (const auto& argument : schema.arguments()) {
    if (argument.name() == "process_group") {
      return true;
    }
  }
  return false;
}

std::set<std::string> words(PyObject* tuple) {
  std::set<std::string> result;
  for (const auto& word : py::reinterpret_borrow<py::tuple>(tuple)) {
    result.insert(word.cast<std::string>());
  }
  return result;
}

c10::ScalarType dtype_of(py::handle object) {
  TORCH_CHECK_TYPE(THPDtype_Check(object.ptr()), "expected a torch.dtype");
  return reinterpret_cast<THPDtype*>(object.ptr())->scalar_type;
}

} // namespace

int register_collectives() {
  static const int count = [] {
    auto& library = *new torch::Library(
        torch::Library::IMPL, "c10d", kDispatchKey, __FILE__, __LINE__);
    // PyTorch has entries for this key, which ours call or replace; the warning says just that.
    Silence silence;
    c10::WarningUtils::WarningHandlerGuard guard(&silence);
    auto& dispatcher = c10::Dispatcher::singleton();
    int replaced = 0;
    for (const auto& name : dispatcher.getAllOpNames()) {
      const auto op = dispatcher.findOp(name);
      if (name.name.rfind("c10d::", 0) != 0 || !op || !op->hasSchema() ||
          !op->hasKernelForDispatchKey(c10::DispatchKey::CPU) ||
          !op->hasKernelForDispatchKey(kDispatchKey) || !takes_a_group(op->schema())) {
        continue;
      }
      library.impl(
          name.name.c_str(),
          torch::CppFunction::makeFromBoxedFunctor(std::make_unique<CollectiveKernel>(*op)));
      ++replaced;
    }
    return replaced;
  }();
  return count;
}

PyObject* make_process_group(PyObject*, PyObject* arguments) {
  PyObject* host = nullptr;
  const char* name = nullptr;
  PyObject* operations = nullptr;
  PyObject* reductions = nullptr;
  PyObject* dtypes = nullptr;
  PyObject* narrowed = nullptr;
  if (!PyArg_ParseTuple(
          arguments,
          "OsO!O!O!O!:make_process_group",
          &host,
          &name,
          &PyTuple_Type,
          &operations,
          &PyTuple_Type,
          &reductions,
          &PyTuple_Type,
          &dtypes,
          &PyTuple_Type,
          &narrowed)) {
    return nullptr;
  }
  try {
    GroupLimits limits{words(operations), words(reductions), {}, {}};
    for (const auto& dtype : py::reinterpret_borrow<py::tuple>(dtypes)) {
      limits.dtypes.insert(dtype_of(dtype));
    }
    for (const auto& pair : py::reinterpret_borrow<py::tuple>(narrowed)) {
      const auto both = py::reinterpret_borrow<py::tuple>(pair);
      limits.narrowed.emplace_back(dtype_of(both[0]), dtype_of(both[1]));
    }
    auto backend = py::handle(host).cast<c10::intrusive_ptr<c10d::Backend>>();
    c10::intrusive_ptr<c10d::Backend> group =
        c10::make_intrusive<DeviceGroup>(name, std::move(backend), std::move(limits));
    return py::cast(std::move(group)).release().ptr();
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (...) {
    set_python_error();
  }
  return nullptr;
}

} // namespace cuda_morph_sim
