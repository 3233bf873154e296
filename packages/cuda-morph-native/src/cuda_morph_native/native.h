/* Shared declarations of the compiled interception tier.
 *
 * Nothing here includes a torch header or links to libtorch: the two C++ functions that are
 * intercepted are found by their mangled names, and the three C++ types that cross the boundary
 * are described below. Both are verified by the self-test that runs at every activation.
 */
#ifndef CUDA_MORPH_NATIVE_H
#define CUDA_MORPH_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <stdint.h>

/* Raised whenever a function changes its name or arguments; core refuses another number. */
#define CUDA_MORPH_INTERFACE 1

/* c10::Device: one byte of type, one of index. */
typedef struct {
    int8_t type;
    int8_t index;
} C10Device;

/* torch.device instances: object header, then the c10::Device. */
typedef struct {
    PyObject_HEAD
    C10Device device;
} TorchDeviceObject;

enum { DEVICE_TYPE_CPU = 0, DEVICE_TYPE_CUDA = 1 };

/* Each file adds its functions to the module. */
extern PyMethodDef device_string_functions[];
extern PyMethodDef device_type_functions[];
extern PyMethodDef tensor_functions[];
extern PyMethodDef calling_frame_functions[];
extern PyMethodDef event_class_functions[];
extern PyMethodDef raised_error_functions[];

/* True when the Python frame that is running belongs to a package that keeps the native view. */
int frame_has_native_view(void);

/* Number of times a CUDA device string was redirected since the module was loaded. */
uint64_t redirected_strings(void);

#endif
