// The Python module: device control, native counters, and registration with PyTorch.
#include "allocator.h"
#include "collectives.h"
#include "device_argument.h"
#include "device_state.h"
#include "generator.h"
#include "hooks.h"
#include "adapter_limits.h"
#include "guarded_memory.h"
#include "memory.h"
#include "memory_functions.h"
#include "registration.h"
#include "streams.h"

#include <c10/util/Exception.h>
#include <torch/csrc/Generator.h>

namespace cuda_morph_sim {

int64_t fallback_calls() noexcept;

namespace {

// Runs a body that may throw a C++ error, and returns null with the Python exception set then.
template <typename Body>
PyObject* guarded(Body body) {
  try {
    return body();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

PyObject* register_backend(PyObject*, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"device_count", "memory_limit", "guarded_addresses", nullptr};
  int count = 0;
  long long limit = 0;
  int guarded_memory = 0;
  if (!PyArg_ParseTupleAndKeywords(
          arguments,
          keywords,
          "iL|p:register_backend",
          const_cast<char**>(names),
          &count,
          &limit,
          &guarded_memory)) {
    return nullptr;
  }
  return guarded([&] {
    static bool registered = false;
    TORCH_CHECK(!registered, "the simulated device is already registered in this process");
    set_device_count(count);
    for (c10::DeviceIndex index = 0; index < device_count(); ++index) {
      memory::set_limit(index, static_cast<size_t>(limit));
    }
    set_guarded_addresses(guarded_memory != 0);
    register_allocator();
    register_hooks();
    register_device_guard();
    register_autocast();
    register_profiler();
    const int operators = register_operators();
    register_collectives();
    registered = true;
    return PyLong_FromLong(operators);
  });
}

// Runs a function that waits for threads which take the interpreter lock.
template <void (*function)()>
PyObject* without_lock(PyObject*, PyObject*) {
  return guarded([] {
    PyThreadState* state = PyEval_SaveThread();
    try {
      function();
    } catch (...) {
      PyEval_RestoreThread(state);
      throw;
    }
    PyEval_RestoreThread(state);
    Py_RETURN_NONE;
  });
}

PyObject* device_count_(PyObject*, PyObject*) {
  return PyLong_FromLong(device_count());
}

PyObject* current_device_(PyObject*, PyObject*) {
  return PyLong_FromLong(current_device());
}

// A negative index changes nothing, as in torch.cuda.
PyObject* set_device(PyObject*, PyObject* device) {
  const int index = device_index(device);
  if (index < 0) {
    return nullptr;
  }
  detail::current_device = static_cast<c10::DeviceIndex>(index);
  Py_RETURN_NONE;
}

PyObject* exchange_device(PyObject*, PyObject* device) {
  const long wanted = PyLong_AsLong(device);
  if (wanted == -1 && PyErr_Occurred() != nullptr) {
    return nullptr;
  }
  if (wanted < 0) {
    return PyLong_FromLong(-1);
  }
  const int index = device_index(device);
  if (index < 0) {
    return nullptr;
  }
  const auto previous = current_device();
  detail::current_device = static_cast<c10::DeviceIndex>(index);
  return PyLong_FromLong(previous);
}

PyObject* index_of(PyObject*, PyObject* device) {
  const int index = device_index(device);
  return index < 0 ? nullptr : PyLong_FromLong(index);
}

PyObject* default_generator_(PyObject*, PyObject* device) {
  const int index = device_index(device);
  if (index < 0) {
    return nullptr;
  }
  return guarded([&] {
    return THPGenerator_initDefaultGenerator(
        default_generator(static_cast<c10::DeviceIndex>(index)));
  });
}

PyObject* fallback_calls_(PyObject*, PyObject*) {
  return PyLong_FromLongLong(fallback_calls());
}

PyMethodDef module_functions[] = {
    {"register_backend",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&register_backend)),
     METH_VARARGS | METH_KEYWORDS,
     "register_backend(device_count, memory_limit, guarded_addresses=False)\n--\n\n"
     "Register the device with PyTorch, once per process; returns the number of operators."},
    {"make_process_group",
     &make_process_group,
     METH_VARARGS,
     "make_process_group(host_group, name, operations, reductions, dtypes, narrowed)\n--\n\n"
     "Make a process group for the device over one for CPU tensors."},
    {"start_autograd_threads",
     &without_lock<&start_autograd_threads>,
     METH_NOARGS,
     "start_autograd_threads()\n--\n\n"
     "Give the autograd engine threads for the device if it has started without."},
    {"settle_autograd_threads",
     &without_lock<&settle_autograd_threads>,
     METH_NOARGS,
     "settle_autograd_threads()\n--\n\n"
     "Wait until the autograd engine has let go of finished passes."},
    {"device_count", &device_count_, METH_NOARGS, "device_count()\n--\n\nNumber of devices."},
    {"current_device", &current_device_, METH_NOARGS, "current_device()\n--\n\nIts index."},
    {"set_device", &set_device, METH_O, "set_device(device)\n--\n\nMake a device current."},
    {"exchange_device",
     &exchange_device,
     METH_O,
     "exchange_device(index)\n--\n\nMake a device current and return the previous index; a "
     "negative index changes nothing and returns -1."},
    {"index_of", &index_of, METH_O, "index_of(device)\n--\n\nIndex meant by a device argument."},
    {"default_generator",
     &default_generator_,
     METH_O,
     "default_generator(device)\n--\n\nThe device's default random generator."},
    {"fallback_calls",
     &fallback_calls_,
     METH_NOARGS,
     "fallback_calls()\n--\n\nHow many operators ran through the boxed fallback."},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "_native",
    "Native half of the simulated device.",
    -1,
    module_functions,
    nullptr,
    nullptr,
    nullptr,
    nullptr};

} // namespace
} // namespace cuda_morph_sim

PyMODINIT_FUNC PyInit__native() {
  PyObject* module = PyModule_Create(&cuda_morph_sim::definition);
  if (module != nullptr &&
      (cuda_morph_sim::add_memory_functions(module) < 0 ||
       cuda_morph_sim::limits::add_limit_functions(module) < 0)) {
    Py_DECREF(module);
    return nullptr;
  }
  return module;
}
