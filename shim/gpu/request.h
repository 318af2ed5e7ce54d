/* A launch, as the program asked for it. */
#pragma once

#include "hook.h"
#include "vendor_abi.h"

struct device;

struct request {
    enum route route; /* selects the driver's function */
    enum hook hook;
    uintptr_t site; /* return address of the outermost hook */
    uint32_t flags; /* enum overlap_launch_flag, by the entry point and its arguments */
    void *function;
    void **parameters;
    void **extra;
    vendor_launch config;
    const void *more; /* AMD: further arguments of the call (struct hip_more), or NULL */
    /* Where it runs, by its stream (launch_slow()); NULL: not known, or nothing is decided. */
    struct device *device;
    uint64_t context;
};

static inline uint64_t threads_of(const struct request *request) {
    return (uint64_t)request->config.blockDimX * request->config.blockDimY * request->config.blockDimZ;
}
static inline uint64_t blocks_of(const struct request *request) {
    return (uint64_t)request->config.gridDimX * request->config.gridDimY * request->config.gridDimZ;
}
