/* Redirects the string "cuda" where PyTorch turns a string into a device.
 *
 * Every device string, from Python, TorchScript or C++, reaches one exported constructor,
 * c10::Device::Device(const std::string&). The libraries of PyTorch call it through their global
 * offset tables, so writing our function into those slots intercepts all of them and leaves every
 * other call alone. For the cuda view the name function c10::get_privateuse1_backend(bool) is
 * intercepted in the same way, so that the accelerator's devices print as "cuda".
 */
#define _GNU_SOURCE
#include "native.h"

#if defined(__linux__) && defined(__GLIBC__) && (defined(__x86_64__) || defined(__aarch64__))

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
#define RELOCATION_JUMP_SLOT R_X86_64_JUMP_SLOT
#define RELOCATION_GLOB_DAT R_X86_64_GLOB_DAT
#else
#define RELOCATION_JUMP_SLOT R_AARCH64_JUMP_SLOT
#define RELOCATION_GLOB_DAT R_AARCH64_GLOB_DAT
#endif

static const char CONSTRUCTOR[] =
    "_ZN3c106DeviceC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE";
static const char CONSTRUCTOR_BASE[] =
    "_ZN3c106DeviceC2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE";
static const char BACKEND_NAME[] = "_ZN3c1023get_privateuse1_backendB5cxx11Eb";

/* std::string of libstdc++ with the C++11 ABI. */
typedef struct {
    const char *data;
    size_t length;
    char local[16];
} CxxString;

typedef void (*DeviceConstructor)(C10Device *, const CxxString *);

static DeviceConstructor original_constructor;

/* What the hooks answer. Written before a slot is, read by any thread. */
static int8_t target_type = DEVICE_TYPE_CUDA;
static char target_name[16];  /* the backend's own name, understood while it is masked */
static size_t target_length;
static uint64_t hits;

typedef struct {
    void **address;
    void *original;
    void *replacement;
    uintptr_t relro_start, relro_end;
} Slot;

enum { MAX_SLOTS = 128 };
static Slot constructor_slots[MAX_SLOTS], name_slots[MAX_SLOTS];
static int constructor_count, name_count;
static unsigned long long scanned_generation;
static int constructor_on, name_on;

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
    if (name_on && redirect(self, text, target_name, target_length)) return;
    original_constructor(self, text); /* may throw; this file is compiled with -fexceptions */
}

static CxxString *hooked_backend_name(CxxString *result, int lower_case) {
    result->data = result->local;
    result->length = 4;
    memcpy(result->local, lower_case ? "cuda" : "CUDA", 5);
    return result;
}

typedef struct {
    const ElfW(Sym) *symbols;
    const char *strings;
    const ElfW(Rela) *plt, *relocations;
    size_t plt_size, relocations_size;
    size_t relative; /* leading relocations that name no symbol: most of them */
    int needs_c10;
} DynamicTable;

/* glibc stores relocated addresses in the dynamic section; a raw offset means an odd loader. */
static int read_dynamic_table(struct dl_phdr_info *info, DynamicTable *table) {
    const ElfW(Dyn) *dynamic = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dynamic = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    if (!dynamic) return 0;
    memset(table, 0, sizeof *table);
    for (const ElfW(Dyn) *entry = dynamic; entry->d_tag != DT_NULL; entry++) {
        const void *pointer = (const void *)entry->d_un.d_ptr;
        switch (entry->d_tag) {
            case DT_SYMTAB: table->symbols = pointer; break;
            case DT_STRTAB: table->strings = pointer; break;
            case DT_JMPREL: table->plt = pointer; break;
            case DT_PLTRELSZ: table->plt_size = entry->d_un.d_val; break;
            case DT_RELA: table->relocations = pointer; break;
            case DT_RELASZ: table->relocations_size = entry->d_un.d_val; break;
            case DT_RELACOUNT: table->relative = entry->d_un.d_val; break;
            default: break;
        }
    }
    if (!table->symbols || !table->strings || (uintptr_t)table->symbols < info->dlpi_addr)
        return 0;
    for (const ElfW(Dyn) *entry = dynamic; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag != DT_NEEDED && entry->d_tag != DT_SONAME) continue;
        const char *name = table->strings + entry->d_un.d_val;
        if (strstr(name, "libc10") || strstr(name, "libtorch")) table->needs_c10 = 1;
    }
    return 1;
}

static void find_relro(struct dl_phdr_info *info, Slot *slot) {
    slot->relro_start = slot->relro_end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_GNU_RELRO) continue;
        slot->relro_start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        slot->relro_end = slot->relro_start + info->dlpi_phdr[i].p_memsz;
    }
}

static int add_slot(Slot *slots, int *count, struct dl_phdr_info *info, size_t offset, void *hook) {
    void **address = (void **)(info->dlpi_addr + offset);
    for (int i = 0; i < *count; i++)
        if (slots[i].address == address) return 0;
    if (*count == MAX_SLOTS) return 0;
    Slot *slot = &slots[(*count)++];
    slot->address = address;
    slot->original = *address;
    slot->replacement = hook;
    find_relro(info, slot);
    return 1;
}

static void collect(struct dl_phdr_info *info, const DynamicTable *table, const ElfW(Rela) *entries,
                    size_t size, size_t first) {
    for (size_t i = first; entries && i < size / sizeof *entries; i++) {
        unsigned long kind = ELF64_R_TYPE(entries[i].r_info);
        if (kind != RELOCATION_JUMP_SLOT && kind != RELOCATION_GLOB_DAT) continue;
        const char *name =
            table->strings + table->symbols[ELF64_R_SYM(entries[i].r_info)].st_name;
        if (strncmp(name, "_ZN3c10", 7) != 0) continue;
        if (!strcmp(name, CONSTRUCTOR) || !strcmp(name, CONSTRUCTOR_BASE))
            add_slot(constructor_slots, &constructor_count, info, entries[i].r_offset,
                     (void *)hooked_constructor);
        else if (!strcmp(name, BACKEND_NAME))
            add_slot(name_slots, &name_count, info, entries[i].r_offset,
                     (void *)hooked_backend_name);
    }
}

static int scan_object(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size;
    (void)unused;
    DynamicTable table;
    if (!read_dynamic_table(info, &table) || !table.needs_c10) return 0;
    collect(info, &table, table.plt, table.plt_size, 0);
    collect(info, &table, table.relocations, table.relocations_size, table.relative);
    return 0;
}

static int read_generation(struct dl_phdr_info *info, size_t size, void *out) {
    (void)size;
    *(unsigned long long *)out = info->dlpi_adds;
    return 1;
}

/* The scan reads every relocation of libtorch once; it is repeated only after a new dlopen. */
static void scan_if_changed(void) {
    unsigned long long generation = 0;
    dl_iterate_phdr(read_generation, &generation);
    if (generation == scanned_generation) return;
    dl_iterate_phdr(scan_object, NULL);
    scanned_generation = generation;
}

static int write_slot(const Slot *slot, void *value) {
    uintptr_t address = (uintptr_t)slot->address;
    uintptr_t page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *page = (void *)(address & ~(page_size - 1));
    int guarded = address >= slot->relro_start && address < slot->relro_end;
    if (guarded && mprotect(page, page_size, PROT_READ | PROT_WRITE) != 0) return -1;
    __atomic_store_n(slot->address, value, __ATOMIC_SEQ_CST);
    if (guarded) mprotect(page, page_size, PROT_READ);
    return 0;
}

static int write_slots(const Slot *slots, int count, int on) {
    for (int i = 0; i < count; i++) {
        if (write_slot(&slots[i], on ? slots[i].replacement : slots[i].original) == 0) continue;
        if (on)
            while (i-- > 0) write_slot(&slots[i], slots[i].original);
        return -1;
    }
    return 0;
}

static int find_original(void) {
    if (original_constructor) return 0;
    void *c10 = dlopen("libc10.so", RTLD_NOLOAD | RTLD_LAZY);
    if (!c10) c10 = RTLD_DEFAULT;
    original_constructor = (DeviceConstructor)dlsym(c10, CONSTRUCTOR);
    return original_constructor ? 0 : -1;
}

static void unhook_all(void) {
    if (name_on) write_slots(name_slots, name_count, 0);
    if (constructor_on) write_slots(constructor_slots, constructor_count, 0);
    name_on = constructor_on = 0;
}

static PyObject *hook_device_strings(PyObject *module, PyObject *args) {
    (void)module;
    int type, mask;
    const char *name;
    if (!PyArg_ParseTuple(args, "isp:hook_device_strings", &type, &name, &mask)) return NULL;
    if (strlen(name) >= sizeof target_name) {
        PyErr_Format(PyExc_ValueError, "device type name too long: %s", name);
        return NULL;
    }
    if (find_original() != 0) {
        PyErr_SetString(PyExc_OSError, "libc10 does not export the device-string constructor");
        return NULL;
    }
    scan_if_changed();
    if (!constructor_count || (mask && !name_count)) {
        PyErr_SetString(PyExc_OSError,
                        "PyTorch does not call the device-string functions through its offset tables");
        return NULL;
    }
    unhook_all();
    target_type = (int8_t)type;
    strcpy(target_name, name);
    target_length = strlen(name);
    name_on = mask;
    constructor_on = 1;
    if (write_slots(constructor_slots, constructor_count, 1) != 0 ||
        (mask && write_slots(name_slots, name_count, 1) != 0)) {
        unhook_all();
        PyErr_SetString(PyExc_OSError, "offset tables of PyTorch are not writable");
        return NULL;
    }
    return PyLong_FromLong(constructor_count + (mask ? name_count : 0));
}

static PyObject *unhook_device_strings(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    unhook_all();
    Py_RETURN_NONE;
}

#else /* another platform: importable, and says why it cannot be used */

uint64_t redirected_strings(void) { return 0; }

static PyObject *hook_device_strings(PyObject *module, PyObject *args) {
    (void)module;
    (void)args;
    PyErr_SetString(PyExc_OSError, "offset tables are only known for glibc Linux on x86-64 and aarch64");
    return NULL;
}

static PyObject *unhook_device_strings(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    Py_RETURN_NONE;
}

#endif

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
