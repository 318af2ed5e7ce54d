/* The functions behind the doors, and what dlsym answers. Between the frontends and resolve.c, name.c and hip_runtimes.c. */
#pragma once

#include "../../core/core.h"
#include "hook.h"
#include "page.h"
#include "vendor_abi.h"

#pragma GCC visibility push(hidden)

/* What is behind a hook, by way in: symbol, dlsym, proc_address; the last one: behind a runtime's own table of functions. NULL until
 * known. A thunk is given out only after its entry is set. */
enum { REAL_WAYS = 3, REAL_TABLE = 3 };
typedef void *real_row[REAL_WAYS + 1];

/* Part of the mapped tables (state.h): NULL before a driver is met. The hot path of launches has a copy that is always there. */
struct real_tables {
    real_row functions[HOOK_COUNT];
    void *exports[HOOK_COUNT]; /* of the driver */
};
extern struct real_tables *real_tables;
extern real_row real_launches[LAUNCH_COUNT];

/* What is known to be behind a hook; NULL: nothing. */
static inline void *real_known(enum hook hook, int way) {
    struct real_tables *const tables = __atomic_load_n(&real_tables, __ATOMIC_ACQUIRE);
    return __builtin_expect(tables != NULL, 1) ? __atomic_load_n(&tables->functions[hook][way], __ATOMIC_ACQUIRE)
                                               : NULL;
}

/* Looks for what an exported wrapper stands in front of, as seen from `site`; NULL: there is no driver. */
void *real_find(enum hook hook, uintptr_t site);

static inline void *real_function(enum overlap_way way, enum hook hook, uintptr_t site) {
    void *real = real_known(hook, way == OVERLAP_WAY_dispatch_table ? REAL_TABLE : (int)way);
    return __builtin_expect(real != NULL, 1) ? real : real_find(hook, site);
}

/* In a body: the function behind it, or out. */
#define BEHIND(parameters)                                                                                             \
    vendor_result(*const real) parameters = (vendor_result(*) parameters)real_function(way, hook, site);               \
    if (!real)                                                                                                         \
    return VENDOR_NOT_INITIALIZED

/* Has a driver (AMD: a runtime) been met, so that it may be asked? */
bool driver_ready(enum vendor vendor);

/* May we look, and ask? */
static inline bool armed_and_ready(enum vendor vendor) {
    return overlap_armed() && driver_ready(vendor);
}

/* The driver's own function behind a hook, for our calls; NULL before it was met, or where it has none. Where a runtime has a
 * table, what it exports would come by our own wrapper there. */
static inline void *real_export(enum hook hook) {
    struct real_tables *const tables = __atomic_load_n(&real_tables, __ATOMIC_ACQUIRE);
    return __builtin_expect(tables != NULL, 1) ? __atomic_load_n(&tables->exports[hook], __ATOMIC_ACQUIRE) : NULL;
}
static inline void *real_own(enum hook hook) {
    void *behind = real_known(hook, REAL_TABLE);
    return behind ? behind : real_export(hook);
}

/* Does the address belong to the driver of this process? It is met by that. And where it was met already? */
bool adopt_driver_of(enum vendor vendor, const void *address);
bool in_driver(enum vendor vendor, uintptr_t address);

/* Or to another one, to which the driver that we have met leads? WSL 2 has a libcuda.so.1 that opens another. */
bool in_other_driver(enum vendor vendor, const void *address);

/* The prefix of the basenames of a vendor's drivers. Is this the code of any of them, known or not? Is a driver of any vendor
 * mapped, whether or not it was called through us? */
const char *driver_prefix(enum vendor vendor);
bool in_any_driver(enum vendor vendor, uintptr_t address, struct overlap_object *object);
bool driver_is_mapped(void);

/* Remembers what is behind a way in, or a table (REAL_TABLE); false if it is another function than the one we know. */
bool real_remember(int way, enum hook hook, void *address);

/* The row of a function that the driver exports; -1: none. */
int real_by_address(enum vendor vendor, const void *address);

/* ---- name.c ---- */

/* The names of the rows; and the row of a name, -1: none. */
const char *hook_name(enum hook hook);
int hook_named(enum vendor vendor, const char *name);
int hook_number(const char *name); /* of any vendor, the following included */

/* Names that are no row of a driver are numbers from HOOK_COUNT on (of runtime.def, cuda/runtime.c) and from TABLE_NAMES on (what
 * AMD's profilers look for, hip/dispatch_table.c). What is behind one of ours; NULL: nothing. */
extern const char runtime_names[][40], table_names[2][32];
enum { TABLE_NAMES = 1 << 16 };
void *runtime_behind(int hook);
void *table_behind(int number);

/* ---- hip_runtimes.c ---- */

/* Several HIP runtimes may be loaded, each for libraries of its own. Is the library of this caller bound to another one than
 * that which we know? And that one's function, which nobody here decides about. */
bool calls_other_runtime(uintptr_t site);
void *other_runtime_function(enum hook hook, uintptr_t site);

#pragma GCC visibility pop
