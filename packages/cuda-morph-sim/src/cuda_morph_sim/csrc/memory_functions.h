// The memory functions of the device module, as native Python functions.
#pragma once

#include <Python.h>

namespace cuda_morph_sim {

// Adds them to the module; -1 with an exception set on failure.
int add_memory_functions(PyObject* module);

} // namespace cuda_morph_sim
