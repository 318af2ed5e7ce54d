/* What differs between the GPUs of the two vendors, one of which a library simulates: SIMGPU_HIP is its major version
 * where it is AMD's. Sources: gpu.def, and for the rules occupancy.c. */
#ifndef SIMGPU_VENDOR_H
#define SIMGPU_VENDOR_H

#ifdef SIMGPU_HIP
#define DEFAULT_GPU "mi250x"
enum {
    IS_AMD = 1,
    MAX_MULTIPROCESSORS = 320,
    NORMAL_PRIORITY = 0,
    LEAST_PRIORITY = 1,
    GREATEST_PRIORITY = -1,
    PRIORITIES = 3,
    DEFAULT_DYNAMIC = 65536,
    RESERVED_SHARED = 0,
    SHARED_GRANULE = 512,
    REGISTER_GRANULE = 8 * 64,
    MOST_REGISTERS = 512, /* of a thread */
    SCALAR_FILE = 800,    /* of a partition; of a warp in units of 16 */
    SCALAR_GRANULE = 16,
    BARRIERS = 16, /* of a multiprocessor: blocks of several warps hold one each */
    WARP = 64,
    LAUNCH_PARAM_END = 3
};
#else
#define DEFAULT_GPU "h100"
enum {
    IS_AMD = 0,
    MAX_MULTIPROCESSORS = 160,
    NORMAL_PRIORITY = 0,
    LEAST_PRIORITY = 0,
    GREATEST_PRIORITY = -5,
    PRIORITIES = 6,
    DEFAULT_DYNAMIC = 49152,
    RESERVED_SHARED = 1024,
    SHARED_GRANULE = 128,
    REGISTER_GRANULE = 256,
    MOST_REGISTERS = 255,
    SCALAR_FILE = 0,
    SCALAR_GRANULE = 1,
    BARRIERS = 0, /* they limit nothing */
    WARP = 32,
    LAUNCH_PARAM_END = 0
};
#endif

#endif
