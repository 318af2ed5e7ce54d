/* Kernels and variables by the addresses that a program knows them by: attributes, occupancy, symbols. */
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
    int device = 0, sizes[3] = {0};
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
        {FUNC_SHARED_SIZE, &sizes[0]},
        {FUNC_CONST_SIZE, &sizes[1]},
        {FUNC_LOCAL_SIZE, &sizes[2]},
        {FUNC_MAX_THREADS, &attributes->maxThreadsPerBlock},
        {FUNC_NUM_REGS, &attributes->numRegs},
        {FUNC_PTX_VERSION, &attributes->ptxVersion},
        {FUNC_BINARY_VERSION, &attributes->binaryVersion},
        {FUNC_CACHE_MODE_CA, &attributes->cacheModeCA},
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
    attributes->sharedSizeBytes = (size_t)sizes[0];
    attributes->constSizeBytes = (size_t)sizes[1];
    attributes->localSizeBytes = (size_t)sizes[2];
    return as_function(result);
}

cudaError_t rt_cudaFuncSetAttribute(const void *function, int attribute, int value) {
    CUkernel kernel;
    int device = 0;
    const cudaError_t result = kernel_here(function, &kernel, &device);
    return result != cudaSuccess ? result
                                 : as_function(rt_calls[0].cuKernelSetAttribute(attribute, value, kernel, device));
}

#define WITH_KERNEL(kernel, call)                                                                                      \
    CUkernel kernel;                                                                                                   \
    int device = 0;                                                                                                    \
    const cudaError_t result = kernel_here(function, &kernel, &device);                                                \
    return result != cudaSuccess ? result : as_function(rt_calls[0].call)

cudaError_t rt_cudaGetFuncBySymbol(cudaFunction_t *out, const void *function) {
    WITH_KERNEL(kernel, cuKernelGetFunction(out, kernel));
}

/* The driver takes kernels where it wants functions. */
cudaError_t rt_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function, int threads,
                                                                      size_t shared, unsigned int flags) {
    WITH_KERNEL(kernel, cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, (CUfunction)kernel, threads,
                                                                             shared, flags));
}

cudaError_t rt_cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int threads,
                                                             size_t shared) {
    return rt_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared, 0);
}

/* nvcc's code keeps what this gives in a static variable, once. Where the kernel cannot be had the address itself is
 * given, so that every launch finds out again and says why, and not only that there is no function. */
cudaError_t rt___cudaGetKernel(cudaKernel_t *kernel, const void *function) {
    const cudaError_t result = rt_cudaGetKernel(kernel, function);
    if (result != cudaSuccess && kernel != NULL)
        *kernel = (cudaKernel_t)(uintptr_t)function;
    return result;
}

cudaError_t rt_cudaGetKernel(cudaKernel_t *out, const void *function) {
    CUkernel kernel = NULL;
    int device = 0;
    if (out == NULL)
        return cudaErrorInvalidValue;
    const cudaError_t result = kernel_here(function, &kernel, &device);
    *out = kernel;
    return result;
}

cudaError_t rt_cudaGetSymbolSize(size_t *bytes, const void *symbol) {
    CUdeviceptr at;
    return bytes != NULL ? rt_variable(symbol, &at, bytes) : cudaErrorInvalidValue;
}
