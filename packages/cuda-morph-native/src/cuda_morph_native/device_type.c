/* torch.device: a vectorcall that reuses device objects, and the `type` attribute per view.
 *
 * torch.device stays the class it is. Device objects are immutable, so handing out the same one
 * for the same string is safe; parsing "cuda" costs eight times as much.
 */
#define _GNU_SOURCE
#include "native.h"

#include <dlfcn.h>
#include <string.h>

static PyTypeObject *device_class;
static vectorcallfunc original_vectorcall;
static PyObject *cached_devices; /* str -> torch.device */
static int vectorcall_on;

enum { MAX_CACHED = 256 };

/* at::impl::torch_function_mode_enabled(): a mode must see the call, so it disables the cache. */
static _Bool (*mode_enabled)(void);

/* The CPU has one device, whose tensors carry no index: "cuda", 0 must equal their device. */
static int collapse_index;

static int names_cuda(PyObject *const *args, Py_ssize_t count, PyObject *keywords) {
    PyObject *name = count ? args[0] : NULL;
    Py_ssize_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
    for (Py_ssize_t i = 0; !name && i < named; i++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(keywords, i), "index") != 0)
            name = args[count + i];
    if (!name) return 0;
    if (PyLong_CheckExact(name)) return 1; /* a number alone means the accelerator's device */
    return PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "cuda") == 0;
}

/* "cuda:1" with a second index is an error that PyTorch cannot see once the first is dropped. */
static int has_two_indices(PyObject *const *args, Py_ssize_t count, PyObject *keywords) {
    Py_ssize_t given = count + (keywords ? PyTuple_GET_SIZE(keywords) : 0);
    if (!collapse_index || given < 2 || !PyUnicode_Check(args[0])) return 0;
    const char *text = PyUnicode_AsUTF8(args[0]);
    if (!text) {
        PyErr_Clear();
        return 0;
    }
    return strncmp(text, "cuda:", 5) == 0;
}

static PyObject *build_device(PyTypeObject *type, PyObject *const *args, Py_ssize_t count,
                              PyObject *keywords) {
    PyObject *positional = PyTuple_New(count), *named = NULL, *result = NULL;
    if (!positional) return NULL;
    for (Py_ssize_t i = 0; i < count; i++) PyTuple_SET_ITEM(positional, i, Py_NewRef(args[i]));
    Py_ssize_t named_count = keywords ? PyTuple_GET_SIZE(keywords) : 0;
    if (named_count) {
        named = PyDict_New();
        for (Py_ssize_t i = 0; named && i < named_count; i++)
            if (PyDict_SetItem(named, PyTuple_GET_ITEM(keywords, i), args[count + i]) < 0)
                Py_CLEAR(named);
    }
    if (!named_count || named) result = type->tp_new(type, positional, named);
    Py_DECREF(positional);
    Py_XDECREF(named);
    return result;
}

static PyObject *device_vectorcall(PyObject *type, PyObject *const *args, size_t flags,
                                   PyObject *keywords) {
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    int cacheable = count == 1 && !keywords && PyUnicode_CheckExact(args[0]) &&
                    cached_devices && !(mode_enabled && mode_enabled());
    if (cacheable) {
        PyObject *known = PyDict_GetItemWithError(cached_devices, args[0]);
        if (known) return Py_NewRef(known);
        if (PyErr_Occurred()) return NULL;
    }
    if (has_two_indices(args, count, keywords))
        return PyErr_Format(PyExc_RuntimeError,
                            "type (string) must not include an index because index was passed "
                            "explicitly: %U", args[0]);
    PyObject *device = build_device((PyTypeObject *)type, args, count, keywords);
    if (device && collapse_index && Py_TYPE(device) == device_class &&
        ((TorchDeviceObject *)device)->device.type == DEVICE_TYPE_CPU &&
        names_cuda(args, count, keywords))
        ((TorchDeviceObject *)device)->device.index = -1; /* fresh, nobody has seen it */
    if (device && cacheable && Py_TYPE(device) == device_class &&
        PyDict_GET_SIZE(cached_devices) < MAX_CACHED &&
        PyDict_SetItem(cached_devices, args[0], device) < 0)
        PyErr_Clear(); /* the device itself is good */
    return device;
}

static PyObject *hook_device_class(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *type;
    int collapse;
    if (!PyArg_ParseTuple(args, "O!p:hook_device_class", &PyType_Type, &type, &collapse))
        return NULL;
    if (vectorcall_on) Py_RETURN_NONE;
    if (!mode_enabled) {
        void *handle = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY);
        *(void **)&mode_enabled =
            dlsym(handle ? handle : RTLD_DEFAULT, "_ZN2at4impl27torch_function_mode_enabledEv");
    }
    if (!mode_enabled) Py_RETURN_FALSE; /* without it a mode would be bypassed: keep PyTorch's own */
    device_class = (PyTypeObject *)type;
    cached_devices = PyDict_New();
    if (!cached_devices) return NULL;
    original_vectorcall = device_class->tp_vectorcall;
    device_class->tp_vectorcall = device_vectorcall;
    vectorcall_on = 1;
    collapse_index = collapse;
    PyType_Modified(device_class);
    Py_RETURN_TRUE;
}

static PyObject *unhook_device_class(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    if (!vectorcall_on) Py_RETURN_NONE;
    device_class->tp_vectorcall = original_vectorcall;
    vectorcall_on = 0;
    Py_CLEAR(cached_devices);
    PyType_Modified(device_class);
    Py_RETURN_NONE;
}

/* ---- the `type` attribute in the cuda view ---- */

static PyObject *original_descriptor;
static getter original_getter;
static PyObject *text_cuda, *text_native;
static int8_t masked_type = -1;
static int check_frames;

static PyObject *type_of_device(PyObject *self, void *closure) {
    if (((TorchDeviceObject *)self)->device.type != masked_type)
        return original_getter(self, closure);
    if (check_frames && frame_has_native_view()) return Py_NewRef(text_native);
    return Py_NewRef(text_cuda);
}

static PyGetSetDef type_attribute = {"type", type_of_device, NULL, NULL, NULL};

static PyObject *mask_device_type(PyObject *module, PyObject *args) {
    (void)module;
    PyTypeObject *type;
    const char *native;
    int masked;
    if (!PyArg_ParseTuple(args, "O!isp:mask_device_type", &PyType_Type, &type, &masked, &native,
                          &check_frames))
        return NULL;
    PyObject *current = PyDict_GetItemString(type->tp_dict, "type");
    if (!original_descriptor) {
        if (!current || !Py_IS_TYPE(current, &PyGetSetDescr_Type)) {
            PyErr_SetString(PyExc_TypeError, "torch.device.type is not the expected attribute");
            return NULL;
        }
        original_descriptor = Py_NewRef(current);
        original_getter = ((PyGetSetDescrObject *)current)->d_getset->get;
        type_attribute.doc = ((PyGetSetDescrObject *)current)->d_getset->doc;
    }
    Py_XSETREF(text_cuda, PyUnicode_InternFromString("cuda"));
    Py_XSETREF(text_native, PyUnicode_InternFromString(native));
    if (!text_cuda || !text_native) return NULL;
    masked_type = (int8_t)masked;
    PyObject *descriptor = PyDescr_NewGetSet(type, &type_attribute);
    if (!descriptor) return NULL;
    int failed = PyDict_SetItemString(type->tp_dict, "type", descriptor);
    Py_DECREF(descriptor);
    if (failed) return NULL;
    PyType_Modified(type);
    Py_RETURN_NONE;
}

static PyObject *unmask_device_type(PyObject *module, PyObject *type) {
    (void)module;
    if (!original_descriptor || !PyType_Check(type)) Py_RETURN_NONE;
    if (PyDict_SetItemString(((PyTypeObject *)type)->tp_dict, "type", original_descriptor) < 0)
        return NULL;
    masked_type = -1;
    PyType_Modified((PyTypeObject *)type);
    Py_RETURN_NONE;
}

PyMethodDef device_type_functions[] = {
    {"hook_device_class", hook_device_class, METH_VARARGS,
     "hook_device_class(torch_device: type, collapse_cpu_index: bool) -> bool"},
    {"unhook_device_class", unhook_device_class, METH_NOARGS, "unhook_device_class() -> None"},
    {"mask_device_type", mask_device_type, METH_VARARGS,
     "mask_device_type(torch_device: type, device_type: int, native_name: str, by_frame: bool) -> None"},
    {"unmask_device_type", unmask_device_type, METH_O,
     "unmask_device_type(torch_device: type) -> None"},
    {NULL, NULL, 0, NULL}};
