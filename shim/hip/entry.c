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

/* `route`, `hook` and `site` are the first arguments of every body. */
#define ENTERED(way, name)                                                                                             \
    const enum route route = ROUTE_##way;                                                                              \
    const enum hook hook = HOOK_##name;                                                                                \
    const uintptr_t site = SITE

#define THUNK(linkage, prefix, way, name, parameters, arguments, call)                                                 \
    linkage hipError_t prefix##name parameters {                                                                       \
        ENTERED(way, name);                                                                                            \
        type_##name *const real = (type_##name *)hip_passes(route, hook, site);                                        \
        const uintptr_t before = hip_enter();                                                                          \
        const hipError_t result = real ? real arguments : call;                                                        \
        this_thread.inside = before;                                                                                   \
        return result;                                                                                                 \
    }
/* The body does the same (HIP_LAUNCH). */
#define LAUNCH_THUNK(linkage, prefix, way, name, parameters, arguments, call)                                          \
    linkage hipError_t prefix##name parameters {                                                                       \
        ENTERED(way, name);                                                                                            \
        return call;                                                                                                   \
    }
#define EACH_WAY(thunk, name, parameters, ...)                                                                         \
    OVERLAP_EXPORT hipError_t name parameters;                                                                         \
    thunk(OVERLAP_EXPORT, , SYMBOL, name, parameters, __VA_ARGS__)                                                     \
        thunk(static, looked_up_, LOOKED_UP, name, parameters, __VA_ARGS__)                                            \
            thunk(static, table_, TABLE, name, parameters, __VA_ARGS__)

#define DRIVER(name, body, parameters, ...)                                                                            \
    EACH_WAY(THUNK, name, parameters, (__VA_ARGS__), body(route, hook, site, __VA_ARGS__))
#define DRIVER_VOID(name, body) EACH_WAY(THUNK, name, (void), (), body(route, hook, site))
#define LAUNCH(name, body, parameters, ...)                                                                            \
    EACH_WAY(LAUNCH_THUNK, name, parameters, (), body(route, hook, site, __VA_ARGS__))
#include "driver.def"
#undef DRIVER

void *hip_thunk(enum route route, enum hook hook) {
    static void *const thunks[][ROUTES] = {
#define DRIVER(name, body, parameters, ...) {(void *)name, (void *)looked_up_##name, (void *)table_##name},
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
