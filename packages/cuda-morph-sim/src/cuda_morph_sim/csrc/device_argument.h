// The `device` argument of torch.cuda's functions: None, an index, a torch.device or a string.
#pragma once

#include <Python.h>

#include <c10/core/Device.h>

namespace cuda_morph_sim {

// Turns the C++ error in flight into a Python exception.
void set_python_error();

// Returns the index of a device of ours, or -1 with a Python exception set.
int device_index(PyObject* device);

// Reads the one optional argument of `f(device=None)`; false with an exception set.
bool read_device_argument(
    const char* function,
    PyObject* const* arguments,
    Py_ssize_t count,
    PyObject* keywords,
    int* index);

} // namespace cuda_morph_sim
