/* Thunks, and the hot paths of HIP's launch calls. What the thread's table does not hold goes to the slow body. */
#pragma once

#include "../../core/core.h"
#include "../common/launch.h"
#include "../common/thread.h"
#include "launch.h"

/* Return a word that can be applied at once, or 0 for the slow body. *real: the real function. If the runtime has a
 * dispatch table, calls that come through it are decided; the slow body passes all others on. */
static inline __attribute__((always_inline)) uint64_t hip_word(ENTRY, const void *function, uint32_t threads,
                                                               uint64_t blocks, size_t shared, hipStream_t stream,
                                                               void **real) {
    const bool by_table = route == ROUTE_TABLE;
    void *const table = real_known(hook, ROUTE_TABLE);
    *real = real_known(hook, route);
    if (__builtin_expect(!*real || (!by_table && table) || shared > OVERLAP_LARGEST_SIZE, 0))
        return 0;
    if (by_table && this_thread.from)
        site = this_thread.from;
    uint32_t size = (uint32_t)shared;
    if (!launch_known(function, 0, threads, blocks, &size, stream,
                      hook == HOOK_hipLaunchKernel_spt ? STREAM_OF_HIP_THREAD : STREAM_OF_HIP_DEVICE, site))
        return 0;
    if (by_table)
        this_thread.from = 0;
    return (uint64_t)size + 1;
}

static inline size_t hip_size(uint64_t word, size_t asked) {
    (void)asked;
    return (size_t)(word - 1);
}

/* Product of a dim3 as it is passed. */
#define VOLUME(xy, z) ((uint64_t)(uint32_t)(xy) * ((xy) >> 32) * (z))

LAUNCH_BODY hip_host_body(ENTRY, type_hipLaunchKernel *slow, const void *function, uint64_t grid_xy, uint32_t grid_z,
                          uint64_t block_xy, uint32_t block_z, void **arguments, size_t shared, hipStream_t stream) {
    void *real;
    const uint64_t word = hip_word(route, hook, site, function, (uint32_t)VOLUME(block_xy, block_z),
                                   VOLUME(grid_xy, grid_z), shared, stream, &real);
    if (__builtin_expect(!word, 0))
        return slow(function, grid_xy, grid_z, block_xy, block_z, arguments, shared, stream);
    return ((type_hipLaunchKernel *)real)(function, grid_xy, grid_z, block_xy, block_z, arguments,
                                          hip_size(word, shared), stream);
}

LAUNCH_BODY hip_module_body(ENTRY, type_hipModuleLaunchKernel *slow, hipFunction_t function, uint32_t grid_x,
                            uint32_t grid_y, uint32_t grid_z, uint32_t block_x, uint32_t block_y, uint32_t block_z,
                            uint32_t shared, hipStream_t stream, void **parameters, void **extra) {
    void *real;
    const uint64_t word = hip_word(route, hook, site, function, block_x * block_y * block_z,
                                   (uint64_t)grid_x * grid_y * grid_z, shared, stream, &real);
    if (__builtin_expect(!word, 0))
        return slow(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters, extra);
    return ((type_hipModuleLaunchKernel *)real)(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                                (uint32_t)hip_size(word, shared), stream, parameters, extra);
}

/* The slow body handles launches that record events. */
LAUNCH_BODY hip_ext_body(ENTRY, type_hipExtLaunchKernel *slow, const void *function, uint64_t grid_xy, uint32_t grid_z,
                         uint64_t block_xy, uint32_t block_z, void **arguments, size_t shared, hipStream_t stream,
                         hipEvent_t start, hipEvent_t stop, int flags) {
    void *real;
    const uint64_t word = start || stop ? 0
                                        : hip_word(route, hook, site, function, (uint32_t)VOLUME(block_xy, block_z),
                                                   VOLUME(grid_xy, grid_z), shared, stream, &real);
    if (__builtin_expect(!word, 0))
        return slow(function, grid_xy, grid_z, block_xy, block_z, arguments, shared, stream, start, stop, flags);
    return ((type_hipExtLaunchKernel *)real)(function, grid_xy, grid_z, block_xy, block_z, arguments,
                                             hip_size(word, shared), stream, start, stop, flags);
}

LAUNCH_BODY hip_items_body(ENTRY, type_hipExtModuleLaunchKernel *slow, hipFunction_t function, uint32_t items_x,
                           uint32_t items_y, uint32_t items_z, uint32_t block_x, uint32_t block_y, uint32_t block_z,
                           size_t shared, hipStream_t stream, void **parameters, void **extra, hipEvent_t start,
                           hipEvent_t stop, uint32_t flags) {
    void *real;
    const bool mangled = hook != HOOK_hipExtModuleLaunchKernel;
    const uint64_t blocks =
        (uint64_t)hip_groups(items_x, block_x) * hip_groups(items_y, block_y) * hip_groups(items_z, block_z);
    const uint64_t word =
        start || stop || (mangled && real_known(HOOK_hipExtModuleLaunchKernel, ROUTE_TABLE))
            ? 0
            : hip_word(route, hook, site, function, block_x * block_y * block_z, blocks, shared, stream, &real);
    if (__builtin_expect(!word, 0))
        return slow(function, items_x, items_y, items_z, block_x, block_y, block_z, shared, stream, parameters, extra,
                    start, stop, flags);
    return ((type_hipExtModuleLaunchKernel *)real)(function, items_x, items_y, items_z, block_x, block_y, block_z,
                                                   hip_size(word, shared), stream, parameters, extra, start, stop,
                                                   flags);
}

#define HOT(linkage, prefix, route, name, body, parameters, ...)                                                       \
    linkage hipError_t prefix##name parameters {                                                                       \
        return body(ROUTE_OF_##route, HOOK_##name, SITE, slow_##route##_##name, __VA_ARGS__);                     \
    }
#define HOT_ROUTES(name, body, parameters, ...)                                                                        \
    OVERLAP_EXPORT hipError_t name parameters;                                                                         \
    HOT(OVERLAP_EXPORT, , symbol, name, body, parameters, __VA_ARGS__)                                                 \
    HOT(USED, dlsym_, dlsym, name, body, parameters, __VA_ARGS__)                                                      \
    HOT(USED, proc_, proc_address, name, body, parameters, __VA_ARGS__)                                                \
    HOT(USED, table_, dispatch_table, name, body, parameters, __VA_ARGS__)

/* ---- Thunks of all other calls ---- */

#define ROUTED(route, name, ...)                                                                                       \
    const struct hip_target target = hip_target((uint32_t)ROUTE_OF_##route << 16 | HOOK_##name, SITE);            \
    if (target.function) {                                                                                             \
        const hipError_t result = ((type_##name *)target.function)(__VA_ARGS__);                                       \
        if (target.noted)                                                                                              \
            this_thread.from = 0;                                                                                      \
        return result;                                                                                                 \
    }

#define THUNKS(name, body, parameters, ...)                                                                            \
    OVERLAP_EXPORT hipError_t name parameters;                                                                         \
    OVERLAP_EXPORT hipError_t name parameters {                                                                        \
        ROUTED(symbol, name, __VA_ARGS__)                                                                              \
        return body(ROUTE_OF_symbol, HOOK_##name, SITE, __VA_ARGS__);                                             \
    }                                                                                                                  \
    USED hipError_t dlsym_##name parameters {                                                                          \
        ROUTED(dlsym, name, __VA_ARGS__)                                                                               \
        return body(ROUTE_OF_dlsym, HOOK_##name, SITE, __VA_ARGS__);                                              \
    }                                                                                                                  \
    USED hipError_t proc_##name parameters {                                                                           \
        ROUTED(proc_address, name, __VA_ARGS__)                                                                        \
        return body(ROUTE_OF_proc_address, HOOK_##name, SITE, __VA_ARGS__);                                       \
    }                                                                                                                  \
    USED hipError_t table_##name parameters {                                                                          \
        return body(ROUTE_TABLE, HOOK_##name, hip_table_site(SITE), __VA_ARGS__);                     \
    }

#define THUNKS_VOID(name, body)                                                                                        \
    OVERLAP_EXPORT hipError_t name(void);                                                                              \
    OVERLAP_EXPORT hipError_t name(void) {                                                                             \
        ROUTED(symbol, name, )                                                                                         \
        return body(ROUTE_OF_symbol, HOOK_##name, SITE);                                                          \
    }                                                                                                                  \
    USED hipError_t dlsym_##name(void) {                                                                               \
        ROUTED(dlsym, name, )                                                                                          \
        return body(ROUTE_OF_dlsym, HOOK_##name, SITE);                                                           \
    }                                                                                                                  \
    USED hipError_t proc_##name(void) {                                                                                \
        ROUTED(proc_address, name, )                                                                                   \
        return body(ROUTE_OF_proc_address, HOOK_##name, SITE);                                                    \
    }                                                                                                                  \
    USED hipError_t table_##name(void) {                                                                               \
        return body(ROUTE_TABLE, HOOK_##name, hip_table_site(SITE));                                  \
    }

/* ---- Launches with a hot path ---- */

/* The slow functions are jumped to, so SITE is still the program's return address. */
#define SLOW(route, site, through, name, body, parameters, ...)                                                        \
    hipError_t slow_##route##_##name parameters;                                                                       \
    __attribute__((cold, noinline)) hipError_t slow_##route##_##name parameters {                                      \
        through return body##_miss(ROUTE_OF_##route, HOOK_##name, site, __VA_ARGS__);                             \
    }
#define SLOW_ROUTED(route, name, body, parameters, ...)                                                                \
    SLOW(route, SITE, ROUTED(route, name, __VA_ARGS__), name, body, parameters, __VA_ARGS__)
#define LAUNCH_THUNKS(name, body, parameters, ...)                                                                     \
    SLOW_ROUTED(symbol, name, body, parameters, __VA_ARGS__)                                                           \
    SLOW_ROUTED(dlsym, name, body, parameters, __VA_ARGS__)                                                            \
    SLOW_ROUTED(proc_address, name, body, parameters, __VA_ARGS__)                                                     \
    SLOW(dispatch_table, hip_table_launch_site(SITE), , name, body, parameters, __VA_ARGS__)                           \
    HOT_ROUTES(name, body, parameters, __VA_ARGS__)

/* Every thunk has an entry in the list. */
enum { LISTED = HOOK_COUNT - HOOK_CUDA_COUNT };
#define SYMBOL(name) name
#define LIST(line) line
#define UNLISTED(row, at) NULL
