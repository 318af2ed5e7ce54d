/* Kernels by the addresses that a program knows them by: attributes, occupancy. */
#include <string.h>

#include "runtime.h"

/* The kernel and this thread's device, which the driver's attributes of kernels belong to. */
static cudaError_t kernel_here(const void *function, CUkernel *kernel, int *device) {
    cudaError_t result = rt_ready();
    if (result == cudaSuccess)
        result = rt_device(device);
    return result != cudaSuccess ? result : rt_kernel(function, kernel);
}

/* An address that is neither registered nor a handle. */
static cudaError_t as_function(CUresult result) {
    return result == CUDA_ERROR_INVALID_HANDLE ? cudaErrorInvalidDeviceFunction : result;
}

cudaError_t rt_cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function) {
    CUkernel kernel;
    int device = 0, shared = 0;
    if (attributes == NULL)
        return cudaErrorInvalidValue;
    cudaError_t result = kernel_here(function, &kernel, &device);
    if (result != cudaSuccess)
        return result;
    memset(attributes, 0, sizeof *attributes);
    const struct {
        int attribute;
        int *value;
    } rows[] = {
        {FUNC_SHARED_SIZE, &shared},
        {FUNC_MAX_THREADS, &attributes->maxThreadsPerBlock},
        {FUNC_NUM_REGS, &attributes->numRegs},
        {FUNC_PTX_VERSION, &attributes->ptxVersion},
        {FUNC_BINARY_VERSION, &attributes->binaryVersion},
        {FUNC_MAX_DYNAMIC, &attributes->maxDynamicSharedSizeBytes},
        {FUNC_CARVEOUT, &attributes->preferredShmemCarveout},
        {FUNC_CLUSTER_MUST_BE_SET, &attributes->clusterDimMustBeSet},
        {FUNC_CLUSTER_WIDTH, &attributes->requiredClusterWidth},
        {FUNC_CLUSTER_HEIGHT, &attributes->requiredClusterHeight},
        {FUNC_CLUSTER_DEPTH, &attributes->requiredClusterDepth},
        {FUNC_CLUSTER_POLICY, &attributes->clusterSchedulingPolicyPreference},
        {FUNC_NON_PORTABLE_CLUSTER, &attributes->nonPortableClusterSizeAllowed},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows && result == cudaSuccess; i++)
        result = rt_calls[0].cuKernelGetAttribute(rows[i].value, rows[i].attribute, kernel, device);
    attributes->sharedSizeBytes = (size_t)shared;
    return as_function(result);
}

cudaError_t rt_cudaFuncSetAttribute(const void *function, int attribute, int value) {
    CUkernel kernel;
    int device = 0;
    const cudaError_t result = kernel_here(function, &kernel, &device);
    return result != cudaSuccess ? result
                                 : as_function(rt_calls[0].cuKernelSetAttribute(attribute, value, kernel, device));
}

/* The driver takes kernels where it wants functions. */
cudaError_t rt_cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int threads,
                                                             size_t shared) {
    CUkernel kernel;
    int device = 0;
    const cudaError_t result = kernel_here(function, &kernel, &device);
    return result != cudaSuccess ? result
                                 : as_function(rt_calls[0].cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
                                       blocks, (CUfunction)kernel, threads, shared, 0));
}

/* nvcc's code keeps what this gives in a static variable, once. Where the kernel cannot be had the address itself is
 * given, so that every launch finds out again and says why, and not only that there is no function. */
cudaError_t rt___cudaGetKernel(cudaKernel_t *out, const void *function) {
    CUkernel kernel = NULL;
    int device = 0;
    if (out == NULL)
        return cudaErrorInvalidValue;
    const cudaError_t result = kernel_here(function, &kernel, &device);
    *out = result == cudaSuccess ? kernel : (cudaKernel_t)(uintptr_t)function;
    return result;
}
