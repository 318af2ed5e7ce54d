/* Types of AMD's HIP runtime, as far as this library needs them. SIMGPU_HIP is its major version.
 *
 * Layouts are those of hip_runtime_api.h of 7.2.4. Handles are the engine's: a hipStream_t is a
 * CUstream, a hipFunction_t a CUfunction, and so on; most numbers of errors are the same, too.
 */
#ifndef SIMGPU_HIP_ABI_H
#define SIMGPU_HIP_ABI_H

#include "../cuda_abi.h"

#ifndef SIMGPU_HIP
#define SIMGPU_HIP 7
#endif

typedef int hipError_t;
typedef int hipDevice_t;
typedef CUcontext hipCtx_t;
typedef CUstream hipStream_t;
typedef CUevent hipEvent_t;
typedef CUmodule hipModule_t;
typedef CUfunction hipFunction_t;
typedef CUlibrary hipLibrary_t;
typedef CUkernel hipKernel_t;
typedef CUgraph hipGraph_t;
typedef CUgraphNode hipGraphNode_t;
typedef CUgraphExec hipGraphExec_t;
typedef CUuuid hipUUID;
typedef CUhostFn hipHostFn_t;
typedef CUlaunchAttribute hipLaunchAttribute;
typedef CUlaunchAttributeValue hipLaunchAttributeValue;
typedef CUlaunchConfig HIP_LAUNCH_CONFIG;

enum {
    hipSuccess = 0,
    hipErrorInvalidValue = 1,
    hipErrorOutOfMemory = 2,
    hipErrorInvalidConfiguration = 9,
    hipErrorMissingConfiguration = 52,
    hipErrorInvalidDeviceFunction = 98,
    hipErrorInvalidHandle = 400,
    hipErrorNotFound = 500,
    hipErrorNotReady = 600,
    hipErrorLaunchOutOfResources = 701,
    hipErrorLaunchFailure = 719,
    hipErrorCooperativeLaunchTooLarge = 720,
    hipErrorNotSupported = 801,
};

typedef struct {
    unsigned int x, y, z;
} dim3;

typedef struct {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    hipStream_t stream;
    hipLaunchAttribute *attrs;
    unsigned int numAttrs;
} hipLaunchConfig_t;

typedef struct {
    int binaryVersion, cacheModeCA;
    size_t constSizeBytes, localSizeBytes;
    int maxDynamicSharedSizeBytes, maxThreadsPerBlock, numRegs, preferredShmemCarveout, ptxVersion;
    size_t sharedSizeBytes;
} hipFuncAttributes;

#endif
