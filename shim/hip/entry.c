/* Thunks. Every row of driver.def becomes three functions around one body: the exported symbol, the one that dlsym and
 * hipGetProcAddress return, and the one in the runtime's own dispatch table, if the table has the entry (enum route). */
#include "../core/core.h"
#include "../sys/sys.h"
#include "../gpu/thread.h"
#include "hip.h"
#include "launch.h"

#define SITE ((uintptr_t)__builtin_return_address(0))

static hipError_t not_initialized(void) {
    return VENDOR_NOT_INITIALIZED;
}

void *hip_passes_by_name(ENTRY) {
    if (in_driver(VENDOR_HIP, site) || overlap_is_ours(site))
        return real_function(route, hook, site);
    if (route != ROUTE_SYMBOL || !calls_other_runtime(site))
        return NULL;
    void *const other = other_runtime_function(hook, site);
    return other ? other : (void *)not_initialized;
}

__attribute__((noinline)) void *hip_passes(ENTRY, uintptr_t frame) {
    if (route != ROUTE_TABLE)
        return hip_passes_by_name(route, hook, site);
    return hip_is_inside(frame) ? real_cached(hook, ROUTE_TABLE) : NULL;
}

/* What the three thunks of a row call. The arguments that only we have are the last ones, so that those of the program stay
 * in their registers. */
#define CALL(name) static __attribute__((noinline)) hipError_t call_##name
#define MAKE_CALL(name, arguments, call)                                                                               \
    type_##name *const real = (type_##name *)hip_passes(route, hook, site, frame);                                     \
    const uintptr_t before = hip_enter(frame);                                                                         \
    const hipError_t result = real ? real arguments : call;                                                            \
    this_thread.inside = before;                                                                                       \
    return result

/* Their frame, not that of the function that they call, marks a call of the runtime: it is the same for all of them. */
#define FROM(way, name) ROUTE_##way, HOOK_##name, SITE, (uintptr_t)__builtin_frame_address(0)
#define THUNKS(name, parameters, call_SYMBOL, call_LOOKED_UP, call_TABLE)                                              \
    OVERLAP_EXPORT hipError_t name parameters;                                                                         \
    OVERLAP_EXPORT hipError_t name parameters {                                                                        \
        return call_SYMBOL;                                                                                            \
    }                                                                                                                  \
    static hipError_t looked_up_##name parameters {                                                                    \
        return call_LOOKED_UP;                                                                                         \
    }                                                                                                                  \
    static hipError_t table_##name parameters {                                                                        \
        return call_TABLE;                                                                                             \
    }
#define SAME(name, first, body, ...)                                                                                   \
    THUNKS(name, (PARAMETERS(__VA_ARGS__)), call_##first(ARGUMENTS(__VA_ARGS__), FROM(SYMBOL, name)),                  \
           call_##first(ARGUMENTS(__VA_ARGS__), FROM(LOOKED_UP, name)),                                                \
           call_##first(ARGUMENTS(__VA_ARGS__), FROM(TABLE, name)))

#define DRIVER(name, body, ...)                                                                                        \
    CALL(name)(PARAMETERS(__VA_ARGS__), ENTRY, uintptr_t frame) {                                                      \
        MAKE_CALL(name, (ARGUMENTS(__VA_ARGS__)), body(route, hook, site, ARGUMENTS(__VA_ARGS__)));                    \
    }                                                                                                                  \
    SAME(name, name, body, __VA_ARGS__)
#define DRIVER_VOID(name, body)                                                                                        \
    CALL(name)(ENTRY, uintptr_t frame) {                                                                               \
        MAKE_CALL(name, (), body(route, hook, site));                                                                  \
    }                                                                                                                  \
    THUNKS(name, (void), call_##name(FROM(SYMBOL, name)), call_##name(FROM(LOOKED_UP, name)),                          \
           call_##name(FROM(TABLE, name)))
/* Of a launch the functions that programs call look for a known one themselves; the dispatch table's, and those of other names
 * (SAME), call hip_cached(). Each does what MAKE_CALL does. */
#define LAUNCH(name, body, ...)                                                                                        \
    CALL(name)(PARAMETERS(__VA_ARGS__), ENTRY, uintptr_t frame) {                                                      \
        if (route == ROUTE_TABLE && hip_is_inside(frame))                                                              \
            return ((type_##name *)real_cached(hook, ROUTE_TABLE))(ARGUMENTS(__VA_ARGS__));                            \
        return body(false, route, hook, site, frame, ARGUMENTS(__VA_ARGS__));                                          \
    }                                                                                                                  \
    THUNKS(name, (PARAMETERS(__VA_ARGS__)), body(true, FROM(SYMBOL, name), ARGUMENTS(__VA_ARGS__)),                    \
           body(true, FROM(LOOKED_UP, name), ARGUMENTS(__VA_ARGS__)),                                                  \
           call_##name(ARGUMENTS(__VA_ARGS__), FROM(TABLE, name)))
#include "driver.def"
#undef DRIVER

void *hip_thunk(enum route route, enum hook hook) {
    static void *const thunks[][ROUTES] = {
#define DRIVER(name, ...) {(void *)name, (void *)looked_up_##name, (void *)table_##name},
#include "driver.def"
#undef DRIVER
    };
    return thunks[(int)hook - HOOK_CUDA_COUNT][route];
}

/* ---- hipGetProcAddress, hipGetDriverEntryPoint ---- */

/* The runtime is asked first; it returns one of its own symbols (hip_device.cpp of ROCm's clr), so the address tells the
 * hook. */
static void replace(void **function) {
    const int hook = *function && overlap_armed() && adopt_driver_of(VENDOR_HIP, *function)
                         ? real_by_address(VENDOR_HIP, *function)
                         : -1;
    if (hook >= 0 && real_remember(ROUTE_LOOKED_UP, (enum hook)hook, real_export((enum hook)hook)))
        *function = hip_thunk(ROUTE_LOOKED_UP, (enum hook)hook);
}

hipError_t hip_proc_address_body(ENTRY, const char *symbol, void **pfn, int version, uint64_t flags, int *status) {
    REAL_OR_RETURN(hipGetProcAddress);
    hipError_t result = real(symbol, pfn, version, flags, status);
    if (result == VENDOR_SUCCESS && pfn)
        replace(pfn);
    return result;
}

hipError_t hip_entry_point_body(ENTRY, const char *symbol, void **function, uint64_t flags, int *status) {
    REAL_OR_RETURN(hipGetDriverEntryPoint);
    hipError_t result = real(symbol, function, flags, status);
    if (result == VENDOR_SUCCESS && function)
        replace(function);
    return result;
}
