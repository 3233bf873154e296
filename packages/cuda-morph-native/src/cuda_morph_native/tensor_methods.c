/* Tensor.cuda as a C method and Tensor.is_cuda as a C attribute.
 *
 * PyTorch compiles DeviceType::CUDA into both, so no device string passes through them.
 */
#include "native.h"

#include <string.h>

static PyObject *text_to, *default_device;
static PyObject *names_two, *names_three; /* keyword names of the calls of Tensor.to below */
static int8_t accelerator_type;

/* PyTorch's own Tensor.to and the arguments of x.cuda(). Calling it with a tuple that is always
 * the same saves the lookup and two layers of calls. */
static PyObject *torch_to, *default_arguments;
static PyCFunctionWithKeywords move;

static int read_argument(PyObject *const *args, Py_ssize_t count, PyObject *keywords,
                         PyObject *values[3]) {
    static const char *const names[] = {"device", "non_blocking", "memory_format"};
    if (count > 3) {
        PyErr_Format(PyExc_TypeError, "cuda() takes at most 3 positional arguments (%zd given)",
                     count);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) values[i] = args[i];
    Py_ssize_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
    for (Py_ssize_t i = 0; i < named; i++) {
        const char *name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(keywords, i));
        if (!name) return -1;
        int slot = -1;
        for (int k = 0; k < 3; k++)
            if (!strcmp(name, names[k])) slot = k;
        if (!strcmp(name, "async")) slot = 1; /* the argument's name before PyTorch 0.4.1 */
        if (slot < 0) {
            PyErr_Format(PyExc_TypeError, "cuda() got an unexpected keyword argument '%s'", name);
            return -1;
        }
        if (values[slot]) {
            PyErr_Format(PyExc_TypeError, "cuda() got multiple values for argument '%s'", name);
            return -1;
        }
        values[slot] = args[count + i];
    }
    return 0;
}

/* The device to move to. The CPU has no ordinals, so PyTorch would take any number for it. */
static PyObject *chosen_device(PyObject *device) {
    if (!device || device == Py_None) return default_device;
    if (PyBool_Check(device)) { /* True is an int: without this it would mean device 1 */
        PyErr_SetString(PyExc_TypeError, "cuda(): argument 'device' must be a device, not bool");
        return NULL;
    }
    if (accelerator_type != DEVICE_TYPE_CPU || !PyLong_Check(device)) return device;
    long index = PyLong_AsLong(device);
    if (index == -1 && PyErr_Occurred()) return NULL;
    if (index <= 0) return default_device;
    return PyErr_Format(PyExc_RuntimeError,
                        "CUDA error: invalid device ordinal (device %ld; the cpu backend of "
                        "cuda-morph has one device, number 0)", index);
}

static PyObject *tensor_cuda(PyObject *self, PyObject *const *args, Py_ssize_t count,
                             PyObject *keywords) {
    if (count == 0 && !keywords) {
        if (move && _PyType_Lookup(Py_TYPE(self), text_to) == torch_to) {
            /* Held: another thread may activate, and replace it, while a copy releases the lock. */
            PyObject *arguments = Py_NewRef(default_arguments);
            PyObject *moved = move(self, arguments, NULL);
            Py_DECREF(arguments);
            return moved;
        }
        PyObject *call[] = {self, default_device}; /* a subclass with a Tensor.to of its own */
        return PyObject_VectorcallMethod(text_to, call, 2, NULL);
    }
    PyObject *values[3] = {NULL, NULL, NULL};
    if (read_argument(args, count, keywords, values) < 0) return NULL;
    PyObject *device = chosen_device(values[0]);
    if (!device) return NULL;
    /* By keyword: a dtype or a tensor in the place of the device must not be understood as one. */
    PyObject *call[] = {self, device, values[1] ? values[1] : Py_False, values[2]};
    return PyObject_VectorcallMethod(text_to, call, 1, values[2] ? names_three : names_two);
}

static PyMethodDef cuda_method = {
    "cuda", (PyCFunction)(void *)tensor_cuda, METH_FASTCALL | METH_KEYWORDS,
    "cuda(device=None, non_blocking=False, memory_format=torch.preserve_format) -> Tensor\n\n"
    "Returns a copy of this tensor on the accelerator that stands for CUDA."};

static int remember_torch_to(PyTypeObject *owner) {
    PyObject *found = PyDict_GetItemWithError(owner->tp_dict, text_to);
    if (!found) return PyErr_Occurred() ? -1 : 0;
    if (!Py_IS_TYPE(found, &PyMethodDescr_Type)) return 0;
    PyMethodDef *method = ((PyMethodDescrObject *)found)->d_method;
    if (method->ml_flags != (METH_VARARGS | METH_KEYWORDS)) return 0;
    Py_XSETREF(torch_to, Py_NewRef(found));
    move = (PyCFunctionWithKeywords)(void *)method->ml_meth;
    return 0;
}

static PyObject *make_cuda_method(PyObject *module, PyObject *args) {
    (void)module;
    PyTypeObject *owner;
    PyObject *device;
    if (!PyArg_ParseTuple(args, "O!O:make_cuda_method", &PyType_Type, &owner, &device)) return NULL;
    if (!text_to) {
        text_to = PyUnicode_InternFromString("to");
        names_two = Py_BuildValue("(ss)", "device", "non_blocking");
        names_three = Py_BuildValue("(sss)", "device", "non_blocking", "memory_format");
        if (!text_to || !names_two || !names_three) return NULL;
    }
    PyObject *arguments = PyTuple_Pack(1, device);
    if (!arguments || remember_torch_to(owner) < 0) {
        Py_XDECREF(arguments);
        return NULL;
    }
    Py_XSETREF(default_arguments, arguments);
    Py_XSETREF(default_device, Py_NewRef(device));
    return PyDescr_NewMethod(owner, &cuda_method);
}

static getter device_getter;
static void *device_closure;
static int answer_by_frame;

static PyObject *tensor_is_cuda(PyObject *self, void *closure) {
    (void)closure;
    PyObject *device = device_getter(self, device_closure);
    if (!device) return NULL;
    int8_t type = ((TorchDeviceObject *)device)->device.type;
    Py_DECREF(device);
    if (type == DEVICE_TYPE_CUDA) Py_RETURN_TRUE;
    if (type != accelerator_type) Py_RETURN_FALSE;
    if (answer_by_frame && frame_has_native_view()) Py_RETURN_FALSE;
    Py_RETURN_TRUE;
}

static PyGetSetDef is_cuda_attribute = {
    "is_cuda", tensor_is_cuda, NULL,
    "Is True if the Tensor is stored on the accelerator that stands for CUDA.", NULL};

static PyObject *make_is_cuda(PyObject *module, PyObject *args) {
    (void)module;
    PyTypeObject *owner;
    PyObject *descriptor;
    int type;
    if (!PyArg_ParseTuple(args, "O!O!ip:make_is_cuda", &PyType_Type, &owner, &PyGetSetDescr_Type,
                          &descriptor, &type, &answer_by_frame))
        return NULL;
    PyGetSetDef *device = ((PyGetSetDescrObject *)descriptor)->d_getset;
    device_getter = device->get;
    device_closure = device->closure;
    accelerator_type = (int8_t)type;
    return PyDescr_NewGetSet(owner, &is_cuda_attribute);
}

PyMethodDef tensor_functions[] = {
    {"make_cuda_method", make_cuda_method, METH_VARARGS,
     "make_cuda_method(owner: type, device: torch.device) -> method descriptor"},
    {"make_is_cuda", make_is_cuda, METH_VARARGS,
     "make_is_cuda(owner: type, device_descriptor, device_type: int, by_frame: bool) -> descriptor"},
    {NULL, NULL, 0, NULL}};
