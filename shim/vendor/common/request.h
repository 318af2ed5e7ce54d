/* A launch as the program asked for it, and its keys in the decision cache. */
#pragma once

#include "../../core/core.h"
#include "hook.h"
#include "vendor_abi.h"

struct request {
    enum overlap_route route;   /* selects the driver's function */
    enum overlap_route counted; /* the route that the statistics page counts */
    enum hook hook;
    uintptr_t site; /* return address of the outermost hook */
    uint32_t flags; /* enum overlap_launch_flag, by the entry point and its arguments */
    void *function;
    void **parameters;
    void **extra;
    vendor_launch config;
    const void *more; /* AMD: further arguments of the call (struct hip_more), or NULL */
};

static inline uint64_t threads_of(const struct request *request) {
    return (uint64_t)request->config.blockDimX * request->config.blockDimY * request->config.blockDimZ;
}
static inline uint64_t blocks_of(const struct request *request) {
    return (uint64_t)request->config.gridDimX * request->config.gridDimY * request->config.gridDimZ;
}
static inline uint64_t key_of(const struct request *request) {
    return overlap_cache_key(threads_of(request), request->config.sharedMemBytes, request->site);
}

/* In the handle of a cache line the top bits hold the four flags of the call (overlap_abi.h) and, for a kernel of every
 * device, the device. */
#define FLAG_SHIFT 60
_Static_assert((uint64_t)OVERLAP_LAUNCH_SMALL_CARVEOUT << FLAG_SHIFT == UINT64_C(1) << 63 &&
                   OVERLAP_DEVICES <= 1 << (FLAG_SHIFT - OVERLAP_CACHE_HANDLE_BITS),
               "bits of a handle in the cache");
#define DEVICE_SHIFT OVERLAP_CACHE_HANDLE_BITS

/* Returns the handle of its cache lines, unless decisions about the kernel are kept by device. */
static inline uint64_t cache_handle_of(const struct request *request) {
    return (uint64_t)(uintptr_t)request->function | (uint64_t)request->flags << FLAG_SHIFT;
}
