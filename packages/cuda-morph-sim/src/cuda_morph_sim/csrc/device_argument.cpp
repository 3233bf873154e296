#include "device_argument.h"

#include "device_state.h"

#include <c10/util/Exception.h>
#include <torch/csrc/Device.h>

#include <exception>

namespace cuda_morph_sim {
namespace {

PyObject* accelerator_error() {
  PyObject* torch = PyImport_ImportModule("torch");
  PyObject* type = torch != nullptr ? PyObject_GetAttrString(torch, "AcceleratorError") : nullptr;
  Py_XDECREF(torch);
  if (type == nullptr) {
    PyErr_Clear();
    Py_INCREF(PyExc_RuntimeError);
    return PyExc_RuntimeError;
  }
  return type;
}

int checked(long index) {
  if (index < 0) {
    return current_device();
  }
  try {
    check_ordinal(static_cast<int>(std::min<long>(index, 1 << 20)));
  } catch (...) {
    set_python_error();
    return -1;
  }
  return static_cast<int>(index);
}

int index_of(const c10::Device& device) {
  if (device.type() != kDeviceType) {
    PyErr_Format(
        PyExc_ValueError,
        "Expected a %s device, but got: %s",
        c10::DeviceTypeName(kDeviceType, /*lower_case=*/true).c_str(),
        device.str().c_str());
    return -1;
  }
  return checked(device.has_index() ? device.index() : -1);
}

} // namespace

void set_python_error() {
  try {
    throw;
  } catch (const c10::AcceleratorError& error) {
    PyObject* type = accelerator_error();
    PyErr_SetString(type, error.what_without_backtrace());
    Py_DECREF(type);
  } catch (const c10::Error& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what_without_backtrace());
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

int device_index(PyObject* device) {
  if (device == Py_None) {
    return current_device();
  }
  if (THPDevice_Check(device)) {
    return index_of(reinterpret_cast<THPDevice*>(device)->device);
  }
  if (PyUnicode_Check(device)) {
    // torch.device parses the string, so that a masked name means the same here as anywhere.
    PyObject* parsed = PyObject_CallOneArg(reinterpret_cast<PyObject*>(&THPDeviceType), device);
    if (parsed == nullptr) {
      return -1;
    }
    const int index = index_of(reinterpret_cast<THPDevice*>(parsed)->device);
    Py_DECREF(parsed);
    return index;
  }
  const long index = PyLong_AsLong(device);
  if (index == -1 && PyErr_Occurred() != nullptr) {
    return -1;
  }
  return checked(index);
}

bool read_device_argument(
    const char* function,
    PyObject* const* arguments,
    Py_ssize_t count,
    PyObject* keywords,
    int* index) {
  const auto named = keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords);
  if (count + named == 0) {
    *index = current_device();
    return true;
  }
  if (count + named > 1) {
    PyErr_Format(PyExc_TypeError, "%s() takes at most 1 argument", function);
    return false;
  }
  if (named == 1 &&
      PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(keywords, 0), "device") != 0) {
    PyErr_Format(
        PyExc_TypeError,
        "%s() got an unexpected keyword argument '%U'",
        function,
        PyTuple_GET_ITEM(keywords, 0));
    return false;
  }
  *index = device_index(arguments[0]);
  return *index >= 0;
}

} // namespace cuda_morph_sim
