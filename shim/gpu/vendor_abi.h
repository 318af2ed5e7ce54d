/* Types and numbers that both vendors share: HIP was modelled on CUDA's driver API, down to the numbers. Handles are
 * opaque pointers. hip_abi.h and cuda_abi.h give them the vendors' names; tests/core compares layouts and numbers
 * with the vendors' headers. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef int vendor_result;
typedef void *vendor_stream;
typedef void *vendor_event;
typedef void *vendor_graph;
typedef void *vendor_node;
typedef void *vendor_exec;
typedef struct vendor_edge vendor_edge;

enum {
    VENDOR_SUCCESS = 0,
    VENDOR_INVALID_VALUE = 1,
    VENDOR_NOT_INITIALIZED = 3,
    VENDOR_INVALID_CONTEXT = 201,
    VENDOR_INVALID_HANDLE = 400,
    VENDOR_OUT_OF_RESOURCES = 701,
    VENDOR_CONTEXT_DESTROYED = 709,
    VENDOR_NOT_SUPPORTED = 801,
};

enum { STREAM_LEGACY = 1, STREAM_PER_THREAD = 2 }; /* handles; NULL means either, depending on the entry point */
enum { STREAM_CAPTURES_NOT = 0 };
enum { STREAM_NON_BLOCKING = 1 };
enum { CAPTURE_MODE_RELAXED = 2 };

/* Launch attributes. On AMD only COOPERATIVE has an effect on the supported GPUs. */
enum { LAUNCH_ATTRIBUTE_COOPERATIVE = 2 };

typedef union {
    char bytes[64];
    int32_t cooperative;
    int32_t priority;
    struct {
        uint32_t x, y, z;
    } cluster;
    int32_t programmatic;
    uint32_t carveout;  /* in percent; CU_SHAREDMEM_CARVEOUT_DEFAULT, -1: the driver's choice */
    vendor_event event; /* first member of the two attributes that record an event */
} vendor_attribute_value;

typedef struct {
    uint32_t id;
    uint32_t pad;
    vendor_attribute_value value;
} vendor_attribute;
_Static_assert(sizeof(vendor_attribute) == 72, "as in cuda.h and hip_runtime_api.h");

/* CUlaunchConfig, HIP_LAUNCH_CONFIG. */
typedef struct {
    uint32_t gridDimX, gridDimY, gridDimZ;
    uint32_t blockDimX, blockDimY, blockDimZ;
    uint32_t sharedMemBytes;
    uint32_t pad;
    vendor_stream hStream;
    vendor_attribute *attrs;
    uint32_t numAttrs;
    uint32_t pad2;
} vendor_launch;
_Static_assert(sizeof(vendor_launch) == 56, "as in cuda.h and hip_runtime_api.h");
