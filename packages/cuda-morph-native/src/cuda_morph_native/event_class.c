/* torch.Event: accepts CUDA's positional options, Event(enable_timing, blocking, interprocess).
 *
 * While cuda-morph is active torch.cuda.Event is torch.Event itself, so that compiled code can
 * trace it; its first positional parameter is a device, CUDA's is a bool.
 */
#include "native.h"

static PyTypeObject *event_class;
static newfunc original_new;

static PyObject *event_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static const char *const names[] = {"enable_timing", "blocking", "interprocess"};
    Py_ssize_t count = PyTuple_GET_SIZE(args);
    int external = keywords && PyDict_GetItemString(keywords, "external") != NULL;
    int positional = count > 0 && count <= 3 && PyBool_Check(PyTuple_GET_ITEM(args, 0));
    if (!positional && !external) return original_new(type, args, keywords);
    PyObject *named = keywords ? PyDict_Copy(keywords) : PyDict_New();
    PyObject *result = NULL, *none = PyTuple_New(0);
    if (!named || !none) goto done;
    if (external && PyDict_DelItemString(named, "external") < 0) goto done;
    for (Py_ssize_t i = 0; positional && i < count; i++)
        if (PyDict_SetItemString(named, names[i], PyTuple_GET_ITEM(args, i)) < 0) goto done;
    result = original_new(type, positional ? none : args, named);
done:
    Py_XDECREF(named);
    Py_XDECREF(none);
    return result;
}

static PyObject *hook_event_class(PyObject *module, PyObject *type) {
    (void)module;
    if (!PyType_Check(type)) {
        PyErr_SetString(PyExc_TypeError, "expected the class torch.Event");
        return NULL;
    }
    if (original_new) Py_RETURN_NONE;
    event_class = (PyTypeObject *)type;
    original_new = event_class->tp_new;
    event_class->tp_new = event_new;
    PyType_Modified(event_class);
    Py_RETURN_NONE;
}

static PyObject *unhook_event_class(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    if (!original_new) Py_RETURN_NONE;
    event_class->tp_new = original_new;
    original_new = NULL;
    PyType_Modified(event_class);
    Py_RETURN_NONE;
}

PyMethodDef event_class_functions[] = {
    {"hook_event_class", hook_event_class, METH_O, "hook_event_class(torch_event: type) -> None"},
    {"unhook_event_class", unhook_event_class, METH_NOARGS, "unhook_event_class() -> None"},
    {NULL, NULL, 0, NULL}};
