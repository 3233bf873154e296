// How torch.distributed reaches the simulated device.
#pragma once

#include <Python.h>

namespace cuda_morph_sim {

// Lets gloo, which takes host tensors only, serve the device's tensors too. Returns the number of
// operators that were replaced.
int register_collectives();

// make_process_group(host_group, name, operations, reductions, dtypes, narrowed)
PyObject* make_process_group(PyObject*, PyObject* arguments);

} // namespace cuda_morph_sim
