/* The extension module: a list of functions from the other files, no state of its own. */
#include "native.h"

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "cuda_morph_native._native",
    "Compiled interception tier of cuda-morph.", -1, NULL, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__native(void) {
    PyObject *module = PyModule_Create(&definition);
    if (!module) return NULL;
    PyMethodDef *const tables[] = {device_string_functions, device_type_functions,
                                   tensor_functions, calling_frame_functions,
                                   event_class_functions, raised_error_functions};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (PyModule_AddFunctions(module, tables[i]) < 0) {
            Py_DECREF(module);
            return NULL;
        }
    if (PyModule_AddIntConstant(module, "INTERFACE", CUDA_MORPH_INTERFACE) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
