/* The few types of NVIDIA's driver interface that the simulated driver needs.
 *
 * Layouts are those of cuda.h 13.0. Handles are opaque pointers there and here.
 */
#ifndef SIMGPU_CUDA_ABI_H
#define SIMGPU_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct sim_cell *CUcontext;
typedef struct sim_cell *CUmodule;
typedef struct sim_cell *CUlibrary;
typedef struct sim_cell *CUfunction;
typedef struct sim_cell *CUkernel; /* told from a CUfunction by its cell, not by its type */
typedef struct sim_cell *CUstream;
typedef struct sim_cell *CUevent;
typedef struct sim_cell *CUgraph;
typedef struct sim_cell *CUgraphNode;
typedef struct sim_cell *CUgraphExec;
typedef struct sim_cell *CUdevResourceDesc;
typedef void (*CUhostFn)(void *);

typedef struct {
    char bytes[16];
} CUuuid;

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_DEINITIALIZED = 4,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_IMAGE = 200,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    CUDA_ERROR_INVALID_PTX = 218,
    CUDA_ERROR_FILE_NOT_FOUND = 301,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_ILLEGAL_STATE = 401,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_ERROR_LAUNCH_TIMEOUT = 702,
    CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE = 708,
    CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
    CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
    CUDA_ERROR_NOT_PERMITTED = 800,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
    CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
    CUDA_ERROR_STREAM_CAPTURE_MERGE = 902,
    CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
    CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904,
    CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905,
    CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
    CUDA_ERROR_CAPTURED_EVENT = 907,
    CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908,
    CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE = 910,
    CUDA_ERROR_INVALID_CLUSTER_SIZE = 912,
    CUDA_ERROR_FUNCTION_NOT_LOADED = 913,
    CUDA_ERROR_INVALID_RESOURCE_TYPE = 914,
    CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION = 915,
};

enum { LAUNCH_PARAM_BUFFER_POINTER = 1, LAUNCH_PARAM_BUFFER_SIZE = 2 };
enum { STREAM_LEGACY = 1, STREAM_PER_THREAD = 2, STREAM_NON_BLOCKING = 1 };
enum { EVENT_DISABLE_TIMING = 2, EVENT_INTERPROCESS = 4 };
enum { EVENT_EXTERNAL = 1 }; /* recording one, and waiting for one */
enum { GRAPH_USE_NODE_PRIORITY = 8 };
enum { CAPTURE_NONE = 0, CAPTURE_ACTIVE = 1, CAPTURE_INVALIDATED = 2 };
enum { MODE_GLOBAL = 0, MODE_RELAXED = 2 }; /* 1: of the thread */
enum {
    FUNC_MAX_THREADS = 0,
    FUNC_SHARED_SIZE = 1,
    FUNC_NUM_REGS = 4,
    FUNC_PTX_VERSION = 5,
    FUNC_BINARY_VERSION = 6,
    FUNC_MAX_DYNAMIC = 8,
    FUNC_CARVEOUT = 9,
    FUNC_CLUSTER_MUST_BE_SET = 10,
    FUNC_CLUSTER_WIDTH = 11,
    FUNC_CLUSTER_HEIGHT = 12,
    FUNC_CLUSTER_DEPTH = 13,
    FUNC_NON_PORTABLE_CLUSTER = 14,
    FUNC_CLUSTER_POLICY = 15,
    FUNC_ATTRIBUTES = 16
};

enum {
    LAUNCH_COOPERATIVE = 2,
    LAUNCH_CLUSTER = 4,
    LAUNCH_PRIORITY = 8,
    LAUNCH_CARVEOUT = 14,
    NEWEST_LAUNCH_ATTRIBUTE = 16 /* of CUDA 13.0 */
};

typedef union {
    char pad[64];
    int integer;
    unsigned int dimension[3];
    void *pointer;
} CUlaunchAttributeValue;

typedef struct {
    int id;
    char pad[4];
    CUlaunchAttributeValue value;
} CUlaunchAttribute;

typedef struct {
    unsigned int gridDimX, gridDimY, gridDimZ;
    unsigned int blockDimX, blockDimY, blockDimZ;
    unsigned int sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute *attrs;
    unsigned int numAttrs;
} CUlaunchConfig;

typedef struct {
    CUfunction func;
    unsigned int gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    void **kernelParams, **extra;
    void *kern, *ctx;
} CUDA_KERNEL_NODE_PARAMS_v2;

typedef struct {
    unsigned long long flags;
    CUstream hUploadStream;
    CUgraphNode hErrNode_out;
    int result_out;
} CUDA_GRAPH_INSTANTIATE_PARAMS;

enum { RESOURCE_SM = 1 };

typedef struct {
    unsigned int smCount, minSmPartitionSize, smCoscheduledAlignment;
} CUdevSmResource;

typedef struct {
    int type;
    unsigned char internal[92];
    union {
        CUdevSmResource sm;
        unsigned char oversize[48];
    } of;
} CUdevResource;

enum {
    NODE_KERNEL = 0,
    NODE_MEMCPY = 1,
    NODE_MEMSET = 2,
    NODE_HOST = 3,
    NODE_CHILD = 4,
    NODE_WAIT = 6,
    NODE_RECORD = 7
};

typedef struct {
    int result;
    CUgraphNode errorNode;
    CUgraphNode errorFromNode;
} CUgraphExecUpdateResultInfo;

typedef struct {
    unsigned char from_port, to_port, type, reserved[5];
} CUgraphEdgeData;

#endif
