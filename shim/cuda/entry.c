/* Thunks. Every row of driver.def becomes two functions around one body: the exported symbol, and the one that dlsym and
 * cuGetProcAddress return (enum route). */
#include "launch.h"

#define SITE ((uintptr_t)__builtin_return_address(0))

#define DRIVER(name, body, ...)                                                                                        \
    OVERLAP_EXPORT CUresult name(PARAMETERS(__VA_ARGS__));                                                             \
    OVERLAP_EXPORT CUresult name(PARAMETERS(__VA_ARGS__)) {                                                            \
        return body(ROUTE_SYMBOL, HOOK_##name, SITE, ARGUMENTS(__VA_ARGS__));                                          \
    }                                                                                                                  \
    static CUresult looked_up_##name(PARAMETERS(__VA_ARGS__)) {                                                        \
        return body(ROUTE_LOOKED_UP, HOOK_##name, SITE, ARGUMENTS(__VA_ARGS__));                                       \
    }
#define DRIVER_VOID(name, body)                                                                                        \
    OVERLAP_EXPORT CUresult name(void);                                                                                \
    OVERLAP_EXPORT CUresult name(void) {                                                                               \
        return body(ROUTE_SYMBOL, HOOK_##name, SITE);                                                                  \
    }                                                                                                                  \
    static CUresult looked_up_##name(void) {                                                                           \
        return body(ROUTE_LOOKED_UP, HOOK_##name, SITE);                                                               \
    }
#include "driver.def"
#undef DRIVER

void *cuda_thunk(enum route route, enum hook hook) {
    static void *const thunks[][2] = {
#define DRIVER(name, ...) {(void *)name, (void *)looked_up_##name},
#include "driver.def"
#undef DRIVER
    };
    return thunks[hook][route];
}
