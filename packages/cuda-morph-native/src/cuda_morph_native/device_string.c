/* Redirects the string "cuda" where PyTorch turns a string into a device.
 *
 * Every device string, from Python, TorchScript or C++, reaches one exported constructor,
 * c10::Device::Device(const std::string&). Our function in the offset tables that lead to it
 * intercepts all of them and leaves every other call alone. For the cuda view the name function
 * c10::get_privateuse1_backend(bool) is intercepted in the same way, so that the accelerator's
 * devices print as "cuda"; for a target that PyTorch does not count as an accelerator, the CPU, so
 * is at::accelerator::getAccelerator(bool), which turns an integer into a device.
 */
#include "offset_table.h"

#include <string.h>

/* std::string of libstdc++ with the C++11 ABI. */
typedef struct {
    const char *data;
    size_t length;
    char local[16];
} CxxString;

/* std::optional<c10::DeviceType>. */
typedef struct {
    int8_t value;
    int8_t engaged;
} OptionalDeviceType;

typedef void (*DeviceConstructor)(C10Device *, const CxxString *);
typedef OptionalDeviceType (*AcceleratorGetter)(_Bool);

static void hooked_constructor(C10Device *self, const CxxString *text);
static CxxString *hooked_backend_name(CxxString *result, int lower_case);
static OptionalDeviceType hooked_accelerator(_Bool checked);

#define STRING_CONSTRUCTOR(kind) \
    "_ZN3c106DeviceC" kind "ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"

static Intercepted constructor = {
    .symbols = {STRING_CONSTRUCTOR("1"), STRING_CONSTRUCTOR("2")},
    .hook = (void *)hooked_constructor};
static Intercepted backend_name = {
    .symbols = {"_ZN3c1023get_privateuse1_backendB5cxx11Eb"}, .hook = (void *)hooked_backend_name};
static Intercepted accelerator = {
    .symbols = {"_ZN2at11accelerator14getAcceleratorEb"}, .hook = (void *)hooked_accelerator};
static Intercepted *const own[] = {&constructor, &backend_name, &accelerator, NULL};
Intercepted *const intercepted_functions[] = {&constructor, &backend_name, &accelerator,
                                              &error_setter, NULL};

/* What the hooks answer. Written before a slot is, read by any thread. */
static DeviceConstructor original_constructor;
static AcceleratorGetter original_accelerator;
static int8_t target_type = DEVICE_TYPE_CUDA;
static char target_name[16]; /* the backend's own name, understood while it is masked */
static size_t target_length;
static uint64_t hits;

uint64_t redirected_strings(void) { return __atomic_load_n(&hits, __ATOMIC_RELAXED); }

static int parse_index(const char *text, size_t length, int8_t *index) {
    if (length == 0 || length > 3 || (length > 1 && text[0] == '0')) return 0;
    int value = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9') return 0;
        value = value * 10 + (text[i] - '0');
    }
    if (value > 127) return 0;
    *index = (int8_t)value;
    return 1;
}

/* "name" or "name:3" becomes a device of the target type; anything else is left to PyTorch. */
static int redirect(C10Device *self, const CxxString *text, const char *name, size_t length) {
    if (text->length < length || memcmp(text->data, name, length) != 0) return 0;
    int8_t index = -1;
    if (text->length > length) {
        if (text->data[length] != ':') return 0;
        if (!parse_index(text->data + length + 1, text->length - length - 1, &index)) return 0;
    }
    self->type = target_type;
    /* The CPU has one device and its tensors carry no index. */
    self->index = target_type == DEVICE_TYPE_CPU ? -1 : index;
    return 1;
}

static void hooked_constructor(C10Device *self, const CxxString *text) {
    if (redirect(self, text, "cuda", 4)) {
        __atomic_fetch_add(&hits, 1, __ATOMIC_RELAXED);
        return;
    }
    if (backend_name.on && redirect(self, text, target_name, target_length)) return;
    original_constructor(self, text); /* may throw; this file is compiled with -fexceptions */
}

static CxxString *hooked_backend_name(CxxString *result, int lower_case) {
    result->data = result->local;
    result->length = 4;
    memcpy(result->local, lower_case ? "cuda" : "CUDA", 5);
    return result;
}

/* PyTorch asks with `checked` when it must have an accelerator: an integer is a device then. A CUDA
 * build answers CUDA on machines without a card too, where the program was told to use the CPU. */
static OptionalDeviceType hooked_accelerator(_Bool checked) {
    OptionalDeviceType found = original_accelerator(0);
    if (!checked || (found.engaged && found.value != DEVICE_TYPE_CUDA)) return found;
    return (OptionalDeviceType){.value = target_type, .engaged = 1};
}

static void unhook_all(void) {
    for (int i = 0; own[i]; i++) offset_table_restore(own[i]);
}

static int hook_all(int mask, int integers) {
    if (offset_table_replace(&constructor) < 0) return -1;
    if (mask && offset_table_replace(&backend_name) < 0) return -1;
    if (integers && offset_table_replace(&accelerator) < 0) return -1;
    return 0;
}

static PyObject *refuse(const char *reason) {
    PyErr_SetString(PyExc_OSError, reason);
    return NULL;
}

static PyObject *hook_device_strings(PyObject *module, PyObject *args) {
    (void)module;
    int type, mask;
    const char *name;
    if (!PyArg_ParseTuple(args, "isp:hook_device_strings", &type, &name, &mask)) return NULL;
    if (strlen(name) >= sizeof target_name)
        return PyErr_Format(PyExc_ValueError, "device type name too long: %s", name);
    const char *problem = offset_table_scan(intercepted_functions);
    if (problem) return refuse(problem);
    original_constructor = (DeviceConstructor)offset_table_symbol("libc10.so", constructor.symbols[0]);
    original_accelerator =
        (AcceleratorGetter)offset_table_symbol("libtorch_cpu.so", accelerator.symbols[0]);
    int integers = type == DEVICE_TYPE_CPU;
    if (!original_constructor || (integers && !original_accelerator))
        return refuse("PyTorch does not export the functions that make a device");
    if (!constructor.count || (mask && !backend_name.count) || (integers && !accelerator.count))
        return refuse("PyTorch does not call these functions through its offset tables");
    unhook_all();
    target_type = (int8_t)type;
    strcpy(target_name, name);
    target_length = strlen(name);
    if (hook_all(mask, integers) != 0) {
        unhook_all();
        return refuse("offset tables of PyTorch are not writable");
    }
    return PyLong_FromLong(constructor.count + (mask ? backend_name.count : 0));
}

static PyObject *unhook_device_strings(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    unhook_all();
    Py_RETURN_NONE;
}

static PyObject *redirected_string_count(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    return PyLong_FromUnsignedLongLong(redirected_strings());
}

PyMethodDef device_string_functions[] = {
    {"hook_device_strings", hook_device_strings, METH_VARARGS,
     "hook_device_strings(device_type: int, name: str, mask_name: bool) -> int"},
    {"unhook_device_strings", unhook_device_strings, METH_NOARGS, "unhook_device_strings() -> None"},
    {"redirected_string_count", redirected_string_count, METH_NOARGS,
     "redirected_string_count() -> int"},
    {NULL, NULL, 0, NULL}};
