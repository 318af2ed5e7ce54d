/* Thunks. Every row of driver.def becomes four functions around one body: the exported symbol, those that dlsym and
 * hipGetProcAddress return, and the one in the runtime's own dispatch table, if the table has the entry. */
#include "../../core/core.h"
#include "../../sys/sys.h"
#include "../common/this_thread.h"
#include "hip.h"
#include "launch.h"

#define SITE ((uintptr_t)__builtin_return_address(0))
#define USED static __attribute__((used)) /* by the assembler below */

static hipError_t not_initialized(void) {
    return VENDOR_NOT_INITIALIZED;
}

void *hip_passes_by_name(ENTRY) {
    if (in_driver(VENDOR_HIP, site) || overlap_is_ours(site))
        return real_function(route, hook, site);
    if (route != OVERLAP_ROUTE_symbol || !calls_other_runtime(site))
        return NULL;
    void *const other = other_runtime_function(hook, site);
    return other ? other : (void *)not_initialized;
}

/* `route`, `hook` and `site` are the first arguments of every body. */
#define ENTERED(way, name)                                                                                             \
    const enum overlap_route route = OVERLAP_ROUTE_##way;                                                              \
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
    thunk(OVERLAP_EXPORT, , symbol, name, parameters, __VA_ARGS__)                                                     \
        thunk(USED, dlsym_, dlsym, name, parameters, __VA_ARGS__)                                                      \
            thunk(USED, proc_, proc_address, name, parameters, __VA_ARGS__)                                            \
                thunk(USED, table_, dispatch_table, name, parameters, __VA_ARGS__)

#define DRIVER(name, body, parameters, ...)                                                                            \
    EACH_WAY(THUNK, name, parameters, (__VA_ARGS__), body(route, hook, site, __VA_ARGS__))
#define DRIVER_VOID(name, body) EACH_WAY(THUNK, name, (void), (), body(route, hook, site))
#define LAUNCH(name, body, parameters, ...)                                                                            \
    EACH_WAY(LAUNCH_THUNK, name, parameters, (), body(route, hook, site, __VA_ARGS__))
#include "driver.def"
#undef DRIVER

/* Offsets of the thunks, as in cuda/entry.c. */
extern const int32_t hip_entry_offsets[][HOOK_COUNT - HOOK_CUDA_COUNT] __attribute__((visibility("hidden")));
#define DISTANCE(thunk) DISTANCE_(thunk)
#define DISTANCE_(thunk) ".long " #thunk " - hip_entry_offsets\n"
__asm__(".pushsection .rodata\n.balign 4\n.globl hip_entry_offsets\n.hidden hip_entry_offsets\nhip_entry_offsets:\n"
#define DRIVER(name, body, parameters, ...) DISTANCE(name)
#include "driver.def"
#undef DRIVER
#define DRIVER(name, body, parameters, ...) DISTANCE(dlsym_##name)
#include "driver.def"
#undef DRIVER
#define DRIVER(name, body, parameters, ...) DISTANCE(proc_##name)
#include "driver.def"
#undef DRIVER
#define DRIVER(name, body, parameters, ...) DISTANCE(table_##name)
#include "driver.def"
#undef DRIVER
        ".popsection");

void *hip_thunk(enum overlap_route route, enum hook hook) {
    const int row = route == OVERLAP_ROUTE_dispatch_table ? 3 : (int)route;
    return (void *)((uintptr_t)hip_entry_offsets +
                    (uintptr_t)(intptr_t)hip_entry_offsets[row][(int)hook - HOOK_CUDA_COUNT]);
}

/* ---- hipGetProcAddress, hipGetDriverEntryPoint ---- */

/* The runtime is asked first; it returns one of its own symbols (hip_device.cpp of ROCm's clr), so the address tells the
 * hook. */
static void replace(void **function) {
    const int hook = *function && overlap_armed() && adopt_driver_of(VENDOR_HIP, *function)
                         ? real_by_address(VENDOR_HIP, *function)
                         : -1;
    if (hook >= 0 && real_remember(OVERLAP_ROUTE_proc_address, (enum hook)hook, real_export((enum hook)hook)))
        *function = hip_thunk(OVERLAP_ROUTE_proc_address, (enum hook)hook);
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
