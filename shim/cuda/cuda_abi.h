/* The few declarations of NVIDIA's driver API that the library needs, so that it builds without a toolkit. Layouts
 * and values are those of cuda.h 13.0, unchanged since the version in each comment; tests/core compares them where
 * the header is installed. */
#pragma once

#include "../gpu/vendor_abi.h"

typedef vendor_result CUresult;
typedef int CUdevice;
typedef void *CUcontext;
typedef void *CUfunction; /* or a CUkernel, cast */
typedef void *CUkernel;
typedef void *CUmodule;
typedef void *CUlibrary;
typedef vendor_stream CUstream;
typedef vendor_event CUevent;
typedef vendor_exec CUgraphExec;
typedef vendor_graph CUgraph;
typedef vendor_node CUgraphNode;
typedef void *CUgreenCtx;
typedef size_t (*CUoccupancyB2DSize)(int threads);

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_INVALID_CLUSTER_SIZE = 912,
    CUDA_ERROR_FUNCTION_NOT_LOADED = 913,
    CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION = 915,
};

enum {
    CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
    CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
    CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9,
    CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH = 11, /* 11.8; HEIGHT and DEPTH follow */
    CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH = 13,
};

enum { CU_SHAREDMEM_CARVEOUT_MAX_SHARED = 100 };
enum { CU_FUNC_CACHE_PREFER_NONE = 0, CU_FUNC_CACHE_PREFER_L1 = 2, CU_FUNC_CACHE_PREFER_EQUAL = 3 };

enum {
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
    CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
    CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK = 12,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
    CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR = 106,
    CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK = 111,
};

typedef struct {
    unsigned char bytes[16];
} CUuuid;

/* Launch attributes: 11.8; PRIORITY is valid for launches since 12.0. */
enum {
    CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2,
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT = 7,
    CU_LAUNCH_ATTRIBUTE_PRIORITY = 8,
    CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION = 11,
    CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 14, /* 12.5 */
};

typedef vendor_attribute_value CUlaunchAttributeValue;
typedef vendor_attribute_value CUstreamAttrValue; /* stream attributes have the same numbers */
typedef vendor_attribute CUlaunchAttribute;
typedef vendor_launch CUlaunchConfig;

enum { CU_STREAM_CAPTURE_STATUS_NONE = 0 };
enum { CU_STREAM_CAPTURE_MODE_RELAXED = 2 };
enum { CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM = 2 };

/* 12.3 */
typedef struct vendor_edge {
    unsigned char from_port, to_port, type, reserved[5];
} CUgraphEdgeData;
_Static_assert(sizeof(CUgraphEdgeData) == 8, "as in cuda.h");

/* 10.0; CONDITIONAL 12.3 */
enum { CU_GRAPH_NODE_TYPE_KERNEL = 0, CU_GRAPH_NODE_TYPE_GRAPH = 4, CU_GRAPH_NODE_TYPE_CONDITIONAL = 13 };
enum { CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY = 8 }; /* 11.7 */

/* 12.0: `func` or `kern` is set. */
typedef struct {
    CUfunction func;
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    void **kernelParams, **extra;
    CUkernel kern;
    CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS_v2;
_Static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS_v2) == 72, "as in cuda.h");

/* 12.0 */
typedef struct {
    uint64_t flags;
    CUstream hUploadStream;
    CUgraphNode hErrNode_out;
    int result_out;
} CUDA_GRAPH_INSTANTIATE_PARAMS;
_Static_assert(sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS) == 32, "as in cuda.h");
