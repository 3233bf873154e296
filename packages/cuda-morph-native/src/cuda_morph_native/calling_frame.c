/* Which package is asking? Libraries that have their own branch for the accelerator keep the
 * native view while user code sees a CUDA machine. */
#include "native.h"

#include <string.h>

static PyObject *native_packages; /* frozenset of top-level package names */
static PyObject *text_name;

/* Looks the top-level package of `globals['__name__']` up; 0 on anything unexpected. */
static int globals_have_native_view(PyObject *globals) {
    if (!globals || !native_packages) return 0;
    PyObject *name = PyDict_GetItemWithError(globals, text_name);
    if (!name || !PyUnicode_Check(name)) {
        PyErr_Clear();
        return 0;
    }
    Py_ssize_t length = PyUnicode_GET_LENGTH(name);
    Py_ssize_t dot = PyUnicode_FindChar(name, '.', 0, length, 1);
    PyObject *package = dot < 0 ? Py_NewRef(name) : PyUnicode_Substring(name, 0, dot);
    int found = package ? PySet_Contains(native_packages, package) : -1;
    Py_XDECREF(package);
    if (found < 0) PyErr_Clear();
    return found == 1;
}

int frame_has_native_view(void) { return globals_have_native_view(PyEval_GetGlobals()); }

static PyObject *set_native_packages(PyObject *module, PyObject *packages) {
    (void)module;
    if (!PyFrozenSet_Check(packages)) {
        PyErr_SetString(PyExc_TypeError, "expected a frozenset of package names");
        return NULL;
    }
    if (!text_name && !(text_name = PyUnicode_InternFromString("__name__"))) return NULL;
    Py_XSETREF(native_packages, Py_NewRef(packages));
    Py_RETURN_NONE;
}

PyMethodDef calling_frame_functions[] = {
    {"set_native_packages", set_native_packages, METH_O,
     "set_native_packages(packages: frozenset[str]) -> None"},
    {NULL, NULL, 0, NULL}};
