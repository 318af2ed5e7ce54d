/* The few declarations of AMD's HIP that the library needs, so that it builds without a toolkit. Layouts and values
 * are those of hip_runtime_api.h 5.2 to 7.2, which agree on everything here except the device properties. */
#pragma once

#include "../gpu/vendor_abi.h"

typedef vendor_result hipError_t;
typedef vendor_stream hipStream_t;
typedef vendor_event hipEvent_t;
typedef vendor_graph hipGraph_t;
typedef vendor_node hipGraphNode_t;
typedef vendor_exec hipGraphExec_t;
typedef vendor_edge hipGraphEdgeData;
typedef vendor_launch HIP_LAUNCH_CONFIG;
typedef void *hipFunction_t;
typedef void *hipModule_t;
typedef void *hipLibrary_t;
typedef void *hipKernel_t;

enum {
    hipErrorOutOfMemory = 2,
    hipErrorInvalidConfiguration = 9,
    hipErrorInvalidHandle = 400,
    hipErrorIllegalState = 401,
    hipErrorStreamCaptureWrongThread = 908,
};

typedef struct {
    uint32_t x, y, z;
} dim3;

/* 7.0 (node hip_6.5) */
typedef struct {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    hipStream_t stream;
    vendor_attribute *attrs;
    uint32_t numAttrs;
} hipLaunchConfig_t;
_Static_assert(sizeof(hipLaunchConfig_t) == 56, "as in hip_runtime_api.h");

struct hipFuncAttributes {
    int binaryVersion, cacheModeCA;
    size_t constSizeBytes, localSizeBytes;
    int maxDynamicSharedSizeBytes, maxThreadsPerBlock, numRegs, preferredShmemCarveout, ptxVersion;
    size_t sharedSizeBytes;
};
_Static_assert(sizeof(struct hipFuncAttributes) == 56 && offsetof(struct hipFuncAttributes, sharedSizeBytes) == 48,
               "as in hip_runtime_api.h");

enum { HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1, HIP_FUNC_ATTRIBUTE_NUM_REGS = 4 };

/* Offsets of the fields of hipDeviceProp_t that are read: before 6.0, and since (hipGetDevicePropertiesR0600). */
struct hip_properties {
    uint32_t size, name, shared, threads_per_block, multiprocessors, threads, architecture, shared_per_multiprocessor;
};
#define HIP_PROPERTIES_R0000 {792, 0, 264, 280, 336, 344, 396, 376}
#define HIP_PROPERTIES_R0600 {1472, 0, 296, 320, 388, 624, 1160, 1416}

typedef struct {
    char bytes[16];
} hipUUID;
