/* Watches the place where PyTorch turns a C++ error into a Python exception.
 *
 * PyTorch's bindings end in PyErr_SetString(PyExc_RuntimeError, text). Our function in their offset
 * tables sets the same exception, and then lets a Python callable give another one for the text.
 * Calls that succeed never come here.
 */
#include "offset_table.h"

#include <string.h>

static void hooked_set_string(PyObject *type, const char *text);

Intercepted error_setter = {.symbols = {"PyErr_SetString"}, .hook = (void *)hooked_set_string};

static PyObject *translator; /* owned; changed with the GIL held, read with it held */
static _Thread_local int translating;

static PyObject *ask(const char *text) {
    PyObject *words = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    if (!words) return NULL;
    PyObject *callable = translator;
    Py_INCREF(callable);
    PyObject *answer = PyObject_CallOneArg(callable, words);
    Py_DECREF(callable);
    Py_DECREF(words);
    return answer;
}

static void hooked_set_string(PyObject *type, const char *text) {
    PyErr_SetString(type, text);
    if (type != PyExc_RuntimeError || !translator || translating || !text) return;
    PyObject *old_type, *old_value, *old_traceback;
    PyErr_Fetch(&old_type, &old_value, &old_traceback);
    translating = 1; /* what the callable itself raises is not translated */
    PyObject *answer = ask(text);
    translating = 0;
    if (answer && PyExceptionInstance_Check(answer)) {
        PyErr_SetObject((PyObject *)Py_TYPE(answer), answer);
        Py_XDECREF(old_type);
        Py_XDECREF(old_value);
        Py_XDECREF(old_traceback);
    } else {
        PyErr_Clear(); /* a translator that fails must not hide the error */
        PyErr_Restore(old_type, old_value, old_traceback);
    }
    Py_XDECREF(answer);
}

static PyObject *unwatch_errors(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    offset_table_restore(&error_setter);
    Py_CLEAR(translator);
    Py_RETURN_NONE;
}

static PyObject *watch_errors(PyObject *module, PyObject *callable) {
    (void)module;
    const char *problem = offset_table_scan(intercepted_functions);
    if (!problem && !error_setter.count)
        problem = "PyTorch does not raise errors through its offset tables";
    if (problem) {
        PyErr_SetString(PyExc_OSError, problem);
        return NULL;
    }
    Py_INCREF(callable);
    Py_XSETREF(translator, callable);
    if (offset_table_replace(&error_setter) != 0) {
        Py_CLEAR(translator);
        PyErr_SetString(PyExc_OSError, "offset tables of PyTorch are not writable");
        return NULL;
    }
    return PyLong_FromLong(error_setter.count);
}

PyMethodDef raised_error_functions[] = {
    {"watch_errors", watch_errors, METH_O, "watch_errors(translator: Callable) -> int"},
    {"unwatch_errors", unwatch_errors, METH_NOARGS, "unwatch_errors() -> None"},
    {NULL, NULL, 0, NULL}};
