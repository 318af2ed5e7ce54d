/* The driver's own functions behind our hooks: resolve.c, name.c (names of hooks) and hip_runtimes.c (several HIP
 * runtimes). */
#pragma once

#include "../core/core.h"
#include "hook.h"
#include "page.h"
#include "rows.h"
#include "vendor_abi.h"

#pragma GCC visibility push(hidden)

/* The function behind a hook, by route. A thunk is handed out only after its function is set. */
extern void *real_functions[HOOK_COUNT][ROUTES];
extern void *real_exports[HOOK_COUNT]; /* what the driver itself exports */

/* Returns the function behind a hook. NULL: not resolved yet. */
static inline void *real_cached(enum hook hook, enum route route) {
    return __atomic_load_n(&real_functions[hook][route], __ATOMIC_ACQUIRE);
}

/* Resolves the function that the caller at `site` would have reached without us. NULL: there is no driver. */
void *real_find(enum hook hook, uintptr_t site);

static inline void *real_function(ENTRY) {
    void *const real = real_cached(hook, route);
    return __builtin_expect(real != NULL, 1) ? real : real_find(hook, site);
}

/* The bodies of bodies.def, and the types of the functions behind their hooks: type_event_wait_body and so on. */
#define BODY(name, ...)                                                                                                \
    typedef vendor_result type_##name(PARAMETERS(__VA_ARGS__));                                                        \
    vendor_result name(ENTRY, PARAMETERS(__VA_ARGS__));
#define BODY_VOID(name)                                                                                                \
    typedef vendor_result type_##name(void);                                                                           \
    vendor_result name(ENTRY);
#include "bodies.def"
#undef BODY
#undef BODY_VOID

/* In a body: the function behind the hook, which has the type of the entry point or of the body. REAL_OR_RETURN declares it as
 * `real`, and returns an error if there is none. */
#define REAL(name) ((type_##name *)real_function(route, hook, site))
#define REAL_OR_RETURN(name)                                                                                           \
    type_##name *const real = REAL(name);                                                                              \
    if (!real)                                                                                                         \
    return VENDOR_NOT_INITIALIZED

/* Has a driver of this vendor (AMD: a HIP runtime) been adopted, so that we may call it? */
bool driver_ready(enum vendor vendor);

/* May we query the driver in this process? */
static inline bool armed_and_ready(enum vendor vendor) {
    return overlap_armed() && driver_ready(vendor);
}

/* Returns the function that the driver exports, for our own calls. NULL: there is none, or no driver is adopted yet. */
static inline void *real_export(enum hook hook) {
    return __atomic_load_n(&real_exports[hook], __ATOMIC_ACQUIRE);
}

/* Stores the driver's functions of these names, which each end with NUL (the last one with two), one behind the other. */
void driver_functions(const struct overlap_object *object, const char *names, void *functions);

/* Is the address in the driver of this process? adopt_driver_of() adopts a driver if none is adopted yet; in_driver()
 * does not. */
bool adopt_driver_of(enum vendor vendor, const void *address);
bool in_driver(enum vendor vendor, uintptr_t address);

/* Is the address in a driver, although not in the adopted one? On WSL 2 libcuda.so.1 opens another libcuda. */
bool in_other_driver(enum vendor vendor, const void *address);

/* driver_prefix() returns the prefix of the file names of a vendor's drivers. in_any_driver(): is the address in a file
 * with that prefix? driver_is_mapped(): is a driver of any vendor mapped, whether or not it was called through us? */
const char *driver_prefix(enum vendor vendor);
bool in_any_driver(enum vendor vendor, uintptr_t address, struct overlap_object *object);
bool driver_is_mapped(void);

/* Stores the function behind a hook for a route. False: another one is stored. Functions of the adopted driver that are
 * looked up count as one, as a driver may return one that it does not export. */
bool real_remember(enum route route, enum hook hook, void *address);

/* Returns the hook of a function that the driver exports; -1: none. */
int real_by_address(enum vendor vendor, const void *address);

/* ---- name.c ---- */

/* Convert between hooks and names. hook_named() returns NO_HOOK for a name without a hook. hook_number() also knows the
 * names of NVIDIA's runtime (cuda/runtime.def), and those that AMD's profilers look up (hip/dispatch_table.c). */
enum { NO_HOOK = -1, HOOK_OF_RUNTIME = HOOK_COUNT, HOOK_OF_TABLE };
const char *hook_name(enum hook hook);
int hook_named(enum vendor vendor, const char *name);
int hook_number(const char *name);

/* ---- hip_runtimes.c ---- */

/* Several HIP runtimes may be loaded, each for libraries of its own. calls_other_runtime(): is the caller bound to a
 * runtime that is not the adopted one? other_runtime_function() returns the function that it is bound to; no decision
 * is made there. */
bool calls_other_runtime(uintptr_t site);
void *other_runtime_function(enum hook hook, uintptr_t site);

#pragma GCC visibility pop
