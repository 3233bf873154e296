/* Calls between shared libraries go through offset tables; this finds and changes their slots. */
#ifndef CUDA_MORPH_OFFSET_TABLE_H
#define CUDA_MORPH_OFFSET_TABLE_H

#include "native.h"

enum { MAX_SLOTS = 64 };

typedef struct {
    void **address;
    void *original;
    uintptr_t relro_start, relro_end; /* read-only after loading */
} Slot;

/* One C++ function, by its mangled names, and what takes its place. */
typedef struct {
    const char *symbols[2];
    void *hook;
    Slot slots[MAX_SLOTS];
    int count;
    int on;
} Intercepted;

/* Everything that is intercepted, NULL-terminated: one scan serves all. */
extern Intercepted *const intercepted_functions[];
extern Intercepted error_setter;

/* Finds the slots of every function in the NULL-terminated list, in all libraries that are loaded.
 * Returns NULL, or the reason why this cannot be done here. */
const char *offset_table_scan(Intercepted *const *list);

/* Returns the address of a symbol of a loaded library, or NULL. */
void *offset_table_symbol(const char *library, const char *symbol);

/* Puts the hook into every slot; all of them or, with -1, none. */
int offset_table_replace(Intercepted *function);

/* Puts the original addresses back. */
void offset_table_restore(Intercepted *function);

#endif
