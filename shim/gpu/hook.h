/* Every hooked entry point of both vendors: one number for each row of their tables. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum vendor { VENDOR_CUDA, VENDOR_HIP, VENDORS };

enum hook {
#define DRIVER(name, ...) HOOK_##name,
#include "../cuda/driver.def"
    HOOK_CUDA_COUNT, /* also the first row of HIP */
    HOOK_BEFORE_HIP = HOOK_CUDA_COUNT - 1,
#include "../hip/driver.def"
#undef DRIVER
    HOOK_COUNT
};

/* Compiled for size where the rest of its file is compiled for speed (shim/build.py). */
#define RARE __attribute__((cold))

/* How a call reached us: by the exported symbol; by an address that dlsym, cuGetProcAddress or hipGetProcAddress
 * returned; or (AMD) by the runtime's dispatch table. A library behind us may define the symbol, too, so each has a
 * function of its own behind it. */
enum route { ROUTE_SYMBOL, ROUTE_LOOKED_UP, ROUTE_TABLE, ROUTES };

/* The first parameters of every body (driver.def): the route, the hook, and the program's return address. */
#define ENTRY enum route route, enum hook hook, uintptr_t site

static inline enum vendor hook_vendor(enum hook hook) {
    return hook < HOOK_CUDA_COUNT ? VENDOR_CUDA : VENDOR_HIP;
}
static inline int hook_first(enum vendor vendor) {
    return vendor == VENDOR_HIP ? HOOK_CUDA_COUNT : 0;
}
static inline int hook_end(enum vendor vendor) {
    return vendor == VENDOR_HIP ? HOOK_COUNT : HOOK_CUDA_COUNT;
}

/* Which default stream a NULL stream means, by the entry point's name: the context's or device's (legacy), or the
 * thread's. */
enum default_stream {
    STREAM_OF_CONTEXT = 0,
    STREAM_OF_THREAD = 1,
    STREAM_OF_HIP_DEVICE = 2,
    STREAM_OF_HIP_THREAD = 3,
};
extern const uint8_t hook_defaults[HOOK_COUNT];
static inline enum default_stream hook_default(enum hook hook) {
    return (enum default_stream)hook_defaults[hook];
}
static inline enum vendor default_vendor(enum default_stream null_stream) {
    return null_stream >= STREAM_OF_HIP_DEVICE ? VENDOR_HIP : VENDOR_CUDA;
}
static inline bool default_is_thread(enum default_stream null_stream) {
    return null_stream & 1;
}
