/* Thunks: every row of driver.def becomes three functions around one body. */
#pragma once

#include "../../core/core.h"
#include "../common/hot.h"
#include "../common/this_thread.h"
#include "launch.h"

#define LAUNCH_ARGUMENTS function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters, extra

DRIVER_BODY launch_body(ENTRY, enum launch_row row, type_cuLaunchKernel *slow, CUfunction function, uint32_t grid_x,
                        uint32_t grid_y, uint32_t grid_z, uint32_t block_x, uint32_t block_y, uint32_t block_z,
                        uint32_t shared, CUstream stream, void **parameters, void **extra) {
    type_cuLaunchKernel *real = (type_cuLaunchKernel *)__atomic_load_n(&real_launches[row][route], __ATOMIC_ACQUIRE);
    const bool outer = outer_is_set();
    const uint64_t word = __builtin_expect(!real, 0)
                              ? 0
                              : launch_known(function, 0, block_x * block_y * block_z,
                                             (uint64_t)grid_x * grid_y * grid_z, shared, stream, null_stream_of(hook),
                                             outer ? OVERLAP_ROUTE_runtime : route, outer ? this_thread.outer : site);
    if (__builtin_expect(!word, 0))
        return slow(LAUNCH_ARGUMENTS);
    shared = word & OVERLAP_WORD_CHANGED ? (uint32_t)(word & OVERLAP_WORD_SIZE_MASK) : shared;
    return real(LAUNCH_ARGUMENTS);
}

#define HOT_launch_body(name, parameters)                                                                              \
    OVERLAP_EXPORT CUresult name parameters;                                                                           \
    HOT(OVERLAP_EXPORT, , symbol, name, launch_body, parameters, LAUNCH_ARGUMENTS)                                     \
    HOT(USED, dlsym_, dlsym, name, launch_body, parameters, LAUNCH_ARGUMENTS)                                          \
    HOT(USED, proc_, proc_address, name, launch_body, parameters, LAUNCH_ARGUMENTS)

#define HOT_launch_ex_body(name, prototype)                                                                            \
    OVERLAP_EXPORT CUresult name prototype;                                                                            \
    EX(OVERLAP_EXPORT, , symbol, name, prototype)                                                                      \
    EX(USED, dlsym_, dlsym, name, prototype)                                                                           \
    EX(USED, proc_, proc_address, name, prototype)
#define EX(linkage, prefix, route, name, prototype)                                                                    \
    linkage CUresult prefix##name prototype {                                                                          \
        return launch_ex_body(OVERLAP_ROUTE_##route, HOOK_##name, SITE, config, function, parameters, extra);          \
    }
#define SLOW_launch_ex_body(route, name, parameters, ...)
#define SLOW_launch_body(route, name, parameters, ...) SLOW(route, name, launch_body, parameters, __VA_ARGS__)

/* Thunks of all other calls: the exported one, and one each for dlsym and cuGetProcAddress. */
#define THUNKS(name, body, parameters, ...)                                                                            \
    OVERLAP_EXPORT CUresult name parameters;                                                                           \
    OVERLAP_EXPORT CUresult name parameters {                                                                          \
        return body(OVERLAP_ROUTE_symbol, HOOK_##name, SITE, __VA_ARGS__);                                             \
    }                                                                                                                  \
    USED CUresult dlsym_##name parameters {                                                                            \
        return body(OVERLAP_ROUTE_dlsym, HOOK_##name, SITE, __VA_ARGS__);                                              \
    }                                                                                                                  \
    USED CUresult proc_##name parameters {                                                                             \
        return body(OVERLAP_ROUTE_proc_address, HOOK_##name, SITE, __VA_ARGS__);                                       \
    }

#define THUNKS_VOID(name, body)                                                                                        \
    OVERLAP_EXPORT CUresult name(void);                                                                                \
    OVERLAP_EXPORT CUresult name(void) {                                                                               \
        return body(OVERLAP_ROUTE_symbol, HOOK_##name, SITE);                                                          \
    }                                                                                                                  \
    USED CUresult dlsym_##name(void) {                                                                                 \
        return body(OVERLAP_ROUTE_dlsym, HOOK_##name, SITE);                                                           \
    }                                                                                                                  \
    USED CUresult proc_##name(void) {                                                                                  \
        return body(OVERLAP_ROUTE_proc_address, HOOK_##name, SITE);                                                    \
    }

/* Slow functions of the hot thunks. They are jumped to, so SITE is still the program's return address. */
#define SLOW(route, name, body, parameters, ...)                                                                       \
    CUresult slow_##route##_##name parameters;                                                                         \
    __attribute__((cold, noinline)) CUresult slow_##route##_##name parameters {                                        \
        return body##_miss(OVERLAP_ROUTE_##route, HOOK_##name, SITE, __VA_ARGS__);                                     \
    }
#define HOT(linkage, prefix, route, name, body, parameters, ...)                                                       \
    linkage CUresult prefix##name parameters {                                                                         \
        return body(OVERLAP_ROUTE_##route, HOOK_##name, SITE, LAUNCH_##name, slow_##route##_##name, __VA_ARGS__);      \
    }
#define LAUNCH_THUNKS(name, body, parameters, ...)                                                                     \
    SLOW_##body(symbol, name, parameters, __VA_ARGS__) SLOW_##body(dlsym, name, parameters, __VA_ARGS__)               \
        SLOW_##body(proc_address, name, parameters, __VA_ARGS__) HOT_##body(name, parameters)

/* Every thunk has an entry in the list. */
enum { LISTED = HOOK_CUDA_COUNT };
#define SYMBOL(name) name
#define LIST(line) line
#define UNLISTED(row, at) NULL
