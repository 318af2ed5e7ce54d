/* The functions behind the doors, and what dlsym answers. Between the frontends and real.c, name.c and foreign.c. */
#pragma once

#include "../../sys/sys.h"
#include "abi.h"
#include "hook.h"

#pragma GCC visibility push(hidden)

/* By hook and way in: symbol, dlsym, proc_address; the last one: behind a runtime's own table of functions. NULL until
 * known. A thunk is given out only after its entry is set. */
enum { REAL_WAYS = 3, REAL_TABLE = 3 };
extern void *real_functions[HOOK_COUNT][REAL_WAYS + 1];

/* Looks for what an exported wrapper stands in front of, as seen from `site`; NULL: there is no driver. */
void *real_find(enum hook hook, uintptr_t site);

static inline void *real_function(enum overlap_way way, enum hook hook, uintptr_t site) {
    const int behind = way == OVERLAP_WAY_dispatch_table ? REAL_TABLE : (int)way;
    void *real = __atomic_load_n(&real_functions[hook][behind], __ATOMIC_ACQUIRE);
    return __builtin_expect(real != NULL, 1) ? real : real_find(hook, site);
}

/* In a body: the function behind it, or out. */
#define BEHIND(parameters)                                                                                             \
    vendor_result(*const real) parameters = (vendor_result(*) parameters)real_function(way, hook, site);               \
    if (!real)                                                                                                         \
    return VENDOR_NOT_INITIALIZED

/* Has a driver (AMD: a runtime) been met, so that it may be asked? */
bool real_ready(enum vendor vendor);

/* May we look, and ask? */
static inline bool armed_and_ready(enum vendor vendor) {
    return overlap_armed() && real_ready(vendor);
}

/* The driver's own function behind a hook, for our calls; NULL before it was met, or where it has none. Where a runtime has a
 * table, what it exports would come by our own wrapper there. */
extern void *real_exports[HOOK_COUNT];
static inline void *real_own(enum hook hook) {
    void *behind = __atomic_load_n(&real_functions[hook][REAL_TABLE], __ATOMIC_ACQUIRE);
    return behind ? behind : __atomic_load_n(&real_exports[hook], __ATOMIC_ACQUIRE);
}

/* Does the address belong to the driver of this process? It is met by that. And where it was met already? */
bool real_is(enum vendor vendor, const void *address);
bool real_holds(enum vendor vendor, uintptr_t address);

/* Or to another one, to which the driver that we have met leads? WSL 2 has a libcuda.so.1 that opens another. */
bool real_is_behind(enum vendor vendor, const void *address);

/* Remembers what is behind a way in; false if it is another function than the one we know. */
bool real_remember(enum overlap_way way, enum hook hook, void *address);

/* The row of a function that the driver exports; -1: none. */
int real_by_address(enum vendor vendor, const void *address);

/* ---- name.c ---- */

/* The names of the rows; and the row of a name, -1: none. */
const char *hook_name(enum hook hook);
int hook_named(enum vendor vendor, const char *name);

/* Names that are no row of a driver are numbers from HOOK_COUNT on (of runtime.def, cuda/runtime.c) and from TABLE_NAMES on (what
 * AMD's profilers look for, hip/table.c). What is behind one of ours; NULL: nothing. */
extern const char runtime_names[][40], table_names[2][32];
enum { TABLE_NAMES = 1 << 16 };
void *runtime_behind(int hook);
void *table_behind(int number);

/* ---- foreign.c ---- */

/* Several HIP runtimes may be loaded, each for libraries of its own. Is the library of this caller bound to another one than
 * that which we know? And that one's function, which nobody here decides about. */
bool real_is_foreign(uintptr_t site);
void *real_foreign(enum hook hook, uintptr_t site);

#pragma GCC visibility pop
