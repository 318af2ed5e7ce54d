/* The doors. Every row of driver.def becomes four functions around one body: the exported symbol, those that dlsym and
 * hipGetProcAddress give out, and the one that stands in the runtime's own table, where it has one. Once that is so, the other
 * three only note who calls. (Those of C++ names are in no table; whether their functions call it is the runtime's
 * business, and once there is one, what they reach is part of their launch: launch.c.)
 */
#include "hot.h"

#define SITE ((uintptr_t)__builtin_return_address(0))
#define USED static __attribute__((used)) /* by the assembler below */

/* Passes a call on to where the table will bring it back to us. */
#define THROUGH_TABLE(way, name, ...)                                                                                  \
    if (__builtin_expect(__atomic_load_n(&real_functions[HOOK_##name][REAL_TABLE], __ATOMIC_RELAXED) != NULL, 0)) {    \
        type_##name *real = (type_##name *)real_function(OVERLAP_WAY_##way, HOOK_##name, SITE);                        \
        if (real) {                                                                                                    \
            if (!this_thread.from)                                                                                     \
                this_thread.from = SITE;                                                                               \
            return real(__VA_ARGS__);                                                                                  \
        }                                                                                                              \
    }

#define THREE_WAYS(name, body, parameters, ...)                                                                        \
    OVERLAP_EXPORT hipError_t name parameters;                                                                         \
    OVERLAP_EXPORT hipError_t name parameters {                                                                        \
        THROUGH_TABLE(symbol, name, __VA_ARGS__)                                                                       \
        return body(OVERLAP_WAY_symbol, HOOK_##name, SITE, __VA_ARGS__);                                               \
    }                                                                                                                  \
    USED hipError_t dlsym_##name parameters {                                                                          \
        THROUGH_TABLE(dlsym, name, __VA_ARGS__)                                                                        \
        return body(OVERLAP_WAY_dlsym, HOOK_##name, SITE, __VA_ARGS__);                                                \
    }                                                                                                                  \
    USED hipError_t proc_##name parameters {                                                                           \
        THROUGH_TABLE(proc_address, name, __VA_ARGS__)                                                                 \
        return body(OVERLAP_WAY_proc_address, HOOK_##name, SITE, __VA_ARGS__);                                         \
    }

#define DRIVER(name, body, parameters, ...)                                                                            \
    THREE_WAYS(name, body, parameters, __VA_ARGS__)                                                                    \
    USED hipError_t table_##name parameters {                                                                          \
        return body(OVERLAP_WAY_dispatch_table, HOOK_##name, hip_table_site(SITE), __VA_ARGS__);                       \
    }

#define DRIVER_VOID(name, body)                                                                                        \
    OVERLAP_EXPORT hipError_t name(void);                                                                              \
    OVERLAP_EXPORT hipError_t name(void) {                                                                             \
        THROUGH_TABLE(symbol, name, )                                                                                  \
        return body(OVERLAP_WAY_symbol, HOOK_##name, SITE);                                                            \
    }                                                                                                                  \
    USED hipError_t dlsym_##name(void) {                                                                               \
        THROUGH_TABLE(dlsym, name, )                                                                                   \
        return body(OVERLAP_WAY_dlsym, HOOK_##name, SITE);                                                             \
    }                                                                                                                  \
    USED hipError_t proc_##name(void) {                                                                                \
        THROUGH_TABLE(proc_address, name, )                                                                            \
        return body(OVERLAP_WAY_proc_address, HOOK_##name, SITE);                                                      \
    }                                                                                                                  \
    USED hipError_t table_##name(void) {                                                                               \
        return body(OVERLAP_WAY_dispatch_table, HOOK_##name, hip_table_site(SITE));                                    \
    }

/* ---- Launches with a hot path ---- */

/* The slow functions are jumped to, so that SITE is the program's return address there too, and the hot ones need no frame. */
#define SLOW(linkage_way, through, name, body, parameters, ...)                                                        \
    __attribute__((cold, noinline)) static hipError_t slow_##linkage_way##_##name parameters {                         \
        through return body##_slow(OVERLAP_WAY_##linkage_way, HOOK_##name, SITE, __VA_ARGS__);                         \
    }
#define HOT(linkage, prefix, way, site, name, body, parameters, ...)                                                   \
    linkage hipError_t prefix##name parameters {                                                                       \
        return body(OVERLAP_WAY_##way, HOOK_##name, site, slow_##way##_##name, __VA_ARGS__);                           \
    }
#define DRIVER_LAUNCH(name, body, parameters, ...)                                                                     \
    SLOW(symbol, THROUGH_TABLE(symbol, name, __VA_ARGS__), name, body, parameters, __VA_ARGS__)                        \
    SLOW(dlsym, THROUGH_TABLE(dlsym, name, __VA_ARGS__), name, body, parameters, __VA_ARGS__)                          \
    SLOW(proc_address, THROUGH_TABLE(proc_address, name, __VA_ARGS__), name, body, parameters, __VA_ARGS__)            \
    __attribute__((cold, noinline)) static hipError_t slow_dispatch_table_##name parameters {                          \
        return body##_slow(OVERLAP_WAY_dispatch_table, HOOK_##name, hip_table_site(SITE), __VA_ARGS__);                \
    }                                                                                                                  \
    OVERLAP_EXPORT hipError_t name parameters;                                                                         \
    HOT(OVERLAP_EXPORT, , symbol, SITE, name, body, parameters, __VA_ARGS__)                                           \
    HOT(USED, dlsym_, dlsym, SITE, name, body, parameters, __VA_ARGS__)                                                \
    HOT(USED, proc_, proc_address, SITE, name, body, parameters, __VA_ARGS__)                                          \
    HOT(USED, table_, dispatch_table, SITE, name, body, parameters, __VA_ARGS__)

/* Of a dim3 as it is passed. */
#define VOLUME(xy, z) ((uint64_t)(uint32_t)(xy) * ((xy) >> 32) * (z))

DRIVER_BODY hip_host_body(enum overlap_way way, enum hook hook, uintptr_t site, type_hipLaunchKernel *slow,
                          const void *function, uint64_t grid_xy, uint32_t grid_z, uint64_t block_xy, uint32_t block_z,
                          void **arguments, size_t shared, hipStream_t stream) {
    void *real;
    const uint64_t word = hip_word(way, hook, site, function, (uint32_t)VOLUME(block_xy, block_z),
                                   VOLUME(grid_xy, grid_z), shared, stream, &real);
    if (__builtin_expect(!word, 0))
        return slow(function, grid_xy, grid_z, block_xy, block_z, arguments, shared, stream);
    return ((type_hipLaunchKernel *)real)(function, grid_xy, grid_z, block_xy, block_z, arguments,
                                          hip_size(word, shared), stream);
}

DRIVER_BODY hip_module_body(enum overlap_way way, enum hook hook, uintptr_t site, type_hipModuleLaunchKernel *slow,
                            hipFunction_t function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, uint32_t block_x,
                            uint32_t block_y, uint32_t block_z, uint32_t shared, hipStream_t stream, void **parameters,
                            void **extra) {
    void *real;
    const uint64_t word = hip_word(way, hook, site, function, block_x * block_y * block_z,
                                   (uint64_t)grid_x * grid_y * grid_z, shared, stream, &real);
    if (__builtin_expect(!word, 0))
        return slow(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters, extra);
    return ((type_hipModuleLaunchKernel *)real)(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                                (uint32_t)hip_size(word, shared), stream, parameters, extra);
}

/* Events of a launch are looked at by the slow body. */
DRIVER_BODY hip_ext_body(enum overlap_way way, enum hook hook, uintptr_t site, type_hipExtLaunchKernel *slow,
                         const void *function, uint64_t grid_xy, uint32_t grid_z, uint64_t block_xy, uint32_t block_z,
                         void **arguments, size_t shared, hipStream_t stream, hipEvent_t start, hipEvent_t stop,
                         int flags) {
    void *real;
    const uint64_t word = start || stop ? 0
                                        : hip_word(way, hook, site, function, (uint32_t)VOLUME(block_xy, block_z),
                                                   VOLUME(grid_xy, grid_z), shared, stream, &real);
    if (__builtin_expect(!word, 0))
        return slow(function, grid_xy, grid_z, block_xy, block_z, arguments, shared, stream, start, stop, flags);
    return ((type_hipExtLaunchKernel *)real)(function, grid_xy, grid_z, block_xy, block_z, arguments,
                                             hip_size(word, shared), stream, start, stop, flags);
}

DRIVER_BODY hip_items_body(enum overlap_way way, enum hook hook, uintptr_t site, type_hipExtModuleLaunchKernel *slow,
                           hipFunction_t function, uint32_t items_x, uint32_t items_y, uint32_t items_z,
                           uint32_t block_x, uint32_t block_y, uint32_t block_z, size_t shared, hipStream_t stream,
                           void **parameters, void **extra, hipEvent_t start, hipEvent_t stop, uint32_t flags) {
    void *real;
    const bool mangled = hook != HOOK_hipExtModuleLaunchKernel;
    const uint64_t blocks =
        (uint64_t)hip_groups(items_x, block_x) * hip_groups(items_y, block_y) * hip_groups(items_z, block_z);
    const uint64_t word =
        start || stop || (mangled && real_functions[HOOK_hipExtModuleLaunchKernel][REAL_TABLE])
            ? 0
            : hip_word(way, hook, site, function, block_x * block_y * block_z, blocks, shared, stream, &real);
    if (__builtin_expect(!word, 0))
        return slow(function, items_x, items_y, items_z, block_x, block_y, block_z, shared, stream, parameters, extra,
                    start, stop, flags);
    return ((type_hipExtModuleLaunchKernel *)real)(function, items_x, items_y, items_z, block_x, block_y, block_z,
                                                   hip_size(word, shared), stream, parameters, extra, start, stop,
                                                   flags);
}

#include "driver.def"
#undef DRIVER

/* Where the thunks are, as distances: addresses would have to be filled in by the loader at the start of every process. */
enum { FIRST = HOOK_CUDA_COUNT, COUNT = HOOK_COUNT - FIRST };
extern const int32_t hip_entry_offsets[][COUNT] __attribute__((visibility("hidden")));
__asm__(".pushsection .rodata\n.balign 4\n.globl hip_entry_offsets\n.hidden hip_entry_offsets\nhip_entry_offsets:\n"
#define DRIVER(name, body, parameters, ...) ".long dlsym_" #name " - hip_entry_offsets\n"
#include "driver.def"
#undef DRIVER
#define DRIVER(name, body, parameters, ...) ".long proc_" #name " - hip_entry_offsets\n"
#include "driver.def"
#undef DRIVER
#define DRIVER(name, body, parameters, ...) ".long table_" #name " - hip_entry_offsets\n"
#include "driver.def"
#undef DRIVER
        ".popsection");

void *hip_thunk(enum overlap_way way, enum hook hook) {
    const int row = way == OVERLAP_WAY_dispatch_table ? 2 : way == OVERLAP_WAY_proc_address;
    return (void *)((uintptr_t)hip_entry_offsets + (uintptr_t)(intptr_t)hip_entry_offsets[row][hook - FIRST]);
}
