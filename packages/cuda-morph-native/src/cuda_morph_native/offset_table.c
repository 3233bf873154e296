#define _GNU_SOURCE
#include "offset_table.h"

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

typedef struct {
    const ElfW(Sym) *symbols;
    const char *strings;
    const ElfW(Rela) *plt, *relocations;
    size_t plt_size, relocations_size;
    size_t relative; /* leading relocations that name no symbol: most of them */
    const uint32_t *hashes; /* DT_GNU_HASH: finds the symbols that the object defines itself */
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
            case DT_GNU_HASH: table->hashes = pointer; break;
            default: break;
        }
    }
    if (!table->symbols || !table->strings || !table->hashes) return 0;
    if ((uintptr_t)table->symbols < info->dlpi_addr) return 0;
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

static void add_slot(Intercepted *function, struct dl_phdr_info *info, size_t offset) {
    void **address = (void **)(info->dlpi_addr + offset);
    for (int i = 0; i < function->count; i++)
        if (function->slots[i].address == address) return;
    if (function->count == MAX_SLOTS) return;
    Slot *slot = &function->slots[function->count++];
    slot->address = address;
    slot->original = *address;
    find_relro(info, slot);
}

/* The relocations of libtorch are many, 140000 with a name each. So the few names are turned into
 * this object's symbol numbers first, and the relocations are only compared with those. */
enum { MAX_WANTED = 8 };

typedef struct {
    size_t symbol;
    Intercepted *function;
} Wanted;

static uint32_t hash_of(const char *name) {
    uint32_t hash = 5381;
    for (; *name; name++) hash = hash * 33 + (unsigned char)*name;
    return hash;
}

/* The number of a symbol that the object defines, or 0. */
static size_t defined_symbol(const DynamicTable *table, const char *name) {
    uint32_t bucket_count = table->hashes[0], first = table->hashes[1], words = table->hashes[2];
    const ElfW(Addr) *filter = (const void *)(table->hashes + 4);
    const uint32_t *buckets = (const void *)(filter + words), *chains = buckets + bucket_count;
    if (!bucket_count) return 0;
    uint32_t hash = hash_of(name), symbol = buckets[hash % bucket_count];
    if (symbol < first) return 0;
    for (;; symbol++) {
        uint32_t found = chains[symbol - first];
        const char *other = table->strings + table->symbols[symbol].st_name;
        if ((found | 1) == (hash | 1) && !strcmp(name, other)) return symbol;
        if (found & 1) return 0;
    }
}

/* The symbols that an object only uses come before the ones that it defines. */
static size_t used_symbol(const DynamicTable *table, const char *name) {
    for (size_t symbol = 1; symbol < table->hashes[1]; symbol++)
        if (!strcmp(name, table->strings + table->symbols[symbol].st_name)) return symbol;
    return 0;
}

static int find_wanted(const DynamicTable *table, Intercepted *const *list, Wanted *wanted) {
    int count = 0;
    for (int k = 0; list[k]; k++)
        for (int i = 0; i < 2; i++) {
            const char *name = list[k]->symbols[i];
            if (!name || count == MAX_WANTED) continue;
            size_t symbol = defined_symbol(table, name);
            if (!symbol) symbol = used_symbol(table, name);
            if (symbol) wanted[count++] = (Wanted){symbol, list[k]};
        }
    return count;
}

static void collect(struct dl_phdr_info *info, const ElfW(Rela) *entries, size_t size, size_t first,
                    const Wanted *wanted, int count) {
    for (size_t i = first; entries && i < size / sizeof *entries; i++) {
        unsigned long kind = ELF64_R_TYPE(entries[i].r_info);
        if (kind != RELOCATION_JUMP_SLOT && kind != RELOCATION_GLOB_DAT) continue;
        for (int k = 0; k < count; k++)
            if (ELF64_R_SYM(entries[i].r_info) == wanted[k].symbol)
                add_slot(wanted[k].function, info, entries[i].r_offset);
    }
}

static int scan_object(struct dl_phdr_info *info, size_t size, void *list) {
    (void)size;
    DynamicTable table;
    if (!read_dynamic_table(info, &table) || !table.needs_c10) return 0;
    Wanted wanted[MAX_WANTED];
    int count = find_wanted(&table, list, wanted);
    if (!count) return 0;
    collect(info, table.plt, table.plt_size, 0, wanted, count);
    collect(info, table.relocations, table.relocations_size, table.relative, wanted, count);
    return 0;
}

static int read_generation(struct dl_phdr_info *info, size_t size, void *out) {
    (void)size;
    *(unsigned long long *)out = info->dlpi_adds;
    return 1;
}

/* The scan reads the relocations of libtorch once; it is repeated only after a new dlopen. */
const char *offset_table_scan(Intercepted *const *list) {
    static unsigned long long scanned;
    unsigned long long generation = 0;
    dl_iterate_phdr(read_generation, &generation);
    if (generation == scanned) return NULL;
    dl_iterate_phdr(scan_object, (void *)list);
    scanned = generation;
    return NULL;
}

void *offset_table_symbol(const char *library, const char *symbol) {
    void *handle = dlopen(library, RTLD_NOLOAD | RTLD_LAZY);
    void *address = dlsym(handle ? handle : RTLD_DEFAULT, symbol);
    if (handle) dlclose(handle); /* the library itself stays: PyTorch holds it */
    return address;
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

int offset_table_replace(Intercepted *function) {
    function->on = 1; /* before the first slot is: a hook may look at it at once */
    for (int i = 0; i < function->count; i++)
        if (write_slot(&function->slots[i], function->hook) != 0) {
            offset_table_restore(function);
            return -1;
        }
    return 0;
}

void offset_table_restore(Intercepted *function) {
    if (!function->on) return;
    for (int i = 0; i < function->count; i++)
        write_slot(&function->slots[i], function->slots[i].original);
    function->on = 0;
}

#else /* another platform: importable, and says why it cannot be used */

const char *offset_table_scan(Intercepted *const *list) {
    (void)list;
    return "offset tables are only known for glibc Linux on x86-64 and aarch64";
}

void *offset_table_symbol(const char *library, const char *symbol) {
    (void)library;
    (void)symbol;
    return NULL;
}

int offset_table_replace(Intercepted *function) {
    (void)function;
    return -1;
}

void offset_table_restore(Intercepted *function) { (void)function; }

#endif
