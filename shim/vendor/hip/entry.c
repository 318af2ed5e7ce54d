/* The doors. Every row of driver.def becomes four functions around one body: the exported symbol, those that dlsym and
 * hipGetProcAddress give out, and the one that stands in the runtime's own table, where it has one. Once that is so, the other
 * three only note who calls. (Those of C++ names are in no table; whether their functions call it is the runtime's
 * business, and once there is one, what they reach is part of their launch: launch.c.)
 */
#ifdef __x86_64__
#include "launch_x86_64.h"
#else
#include "launch_portable.h"
#endif

#define SITE ((uintptr_t)__builtin_return_address(0))
#define USED static __attribute__((used)) /* by the assembler below */

/* Has the runtime a table, so that a call that is passed on comes back to us? */
#define HAS_TABLE(name)                                                                                                \
    __builtin_expect(__atomic_load_n(&real_functions[HOOK_##name][REAL_TABLE], __ATOMIC_RELAXED) != NULL, 0)

/* Passes it on. Whoever was noted before us is the caller, and is so after us. */
#define THROUGH_TABLE(way, name, ...)                                                                                  \
    if (HAS_TABLE(name)) {                                                                                             \
        type_##name *real = (type_##name *)real_function(OVERLAP_WAY_##way, HOOK_##name, SITE);                        \
        if (real) {                                                                                                    \
            const bool first = !this_thread.from;                                                                      \
            if (first)                                                                                                 \
                this_thread.from = SITE;                                                                               \
            const hipError_t result = real(__VA_ARGS__);                                                               \
            if (first) /* it may not have come by */                                                                   \
                this_thread.from = 0;                                                                                  \
            return result;                                                                                             \
        }                                                                                                              \
    }

/* A caller that belongs to another runtime than the one that we know is that one's. */
#define TO_ANOTHER(name, ...)                                                                                          \
    if (__builtin_expect(real_is_foreign(SITE), 0)) {                                                                  \
        type_##name *real = (type_##name *)real_foreign(HOOK_##name, SITE);                                            \
        return real ? real(__VA_ARGS__) : VENDOR_NOT_INITIALIZED;                                                      \
    }

#define THREE_WAYS(name, body, parameters, ...)                                                                        \
    OVERLAP_EXPORT hipError_t name parameters;                                                                         \
    OVERLAP_EXPORT hipError_t name parameters {                                                                        \
        TO_ANOTHER(name, __VA_ARGS__)                                                                                  \
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
        TO_ANOTHER(name, )                                                                                             \
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

/* The slow functions are jumped to, so that SITE is the program's return address there too. What passes a call on is a function
 * of its own, or all arguments would be kept for it. */
#define SLOW(way, site, through, name, body, parameters, ...)                                                          \
    hipError_t slow_##way##_##name parameters;                                                                         \
    __attribute__((cold, noinline)) hipError_t slow_##way##_##name parameters {                                        \
        through return body##_slow(OVERLAP_WAY_##way, HOOK_##name, site, __VA_ARGS__);                                 \
    }
#define PASSES_ON(way, name, parameters, ...)                                                                          \
    __attribute__((cold, noinline)) static hipError_t on_##way##_##name parameters {                                   \
        type_##name *real = (type_##name *)real_function(OVERLAP_WAY_##way, HOOK_##name, this_thread.from);            \
        return real ? real(__VA_ARGS__) : VENDOR_NOT_INITIALIZED;                                                      \
    }
#define PASS_ON(way, name, ...)                                                                                        \
    if (HAS_TABLE(name)) {                                                                                             \
        this_thread.found = 0;                                                                                         \
        if (!this_thread.from)                                                                                         \
            this_thread.from = SITE;                                                                                   \
        return on_##way##_##name(__VA_ARGS__);                                                                         \
    }
#define SLOW_OR_ON(way, name, body, parameters, ...)                                                                   \
    PASSES_ON(way, name, parameters, __VA_ARGS__)                                                                      \
    SLOW(way, SITE, PASS_ON(way, name, __VA_ARGS__), name, body, parameters, __VA_ARGS__)
#define ELSEWHERE(name, parameters, ...)                                                                               \
    __attribute__((cold, noinline)) static hipError_t elsewhere_##name parameters {                                    \
        TO_ANOTHER(name, __VA_ARGS__)                                                                                  \
        return VENDOR_NOT_INITIALIZED;                                                                                 \
    }
#define TO_ELSEWHERE(name, ...)                                                                                        \
    if (__builtin_expect(real_is_foreign(SITE), 0))                                                                    \
        return elsewhere_##name(__VA_ARGS__);
#define DRIVER_LAUNCH(name, body, parameters, ...)                                                                     \
    PASSES_ON(symbol, name, parameters, __VA_ARGS__)                                                                   \
    ELSEWHERE(name, parameters, __VA_ARGS__)                                                                           \
    SLOW(symbol, SITE, TO_ELSEWHERE(name, __VA_ARGS__) PASS_ON(symbol, name, __VA_ARGS__), name, body, parameters,     \
         __VA_ARGS__)                                                                                                  \
    SLOW_OR_ON(dlsym, name, body, parameters, __VA_ARGS__)                                                             \
    SLOW_OR_ON(proc_address, name, body, parameters, __VA_ARGS__)                                                      \
    SLOW(dispatch_table, hip_table_launch_site(SITE), , name, body, parameters, __VA_ARGS__)                           \
    HOT_WAYS(name, body, parameters, __VA_ARGS__)
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
