/* Launches: the configuration that <<<>>> leaves for the stub that nvcc writes, and the three ways to launch. */
#include <string.h>

#include "runtime.h"

enum { DEEPEST = 16, MOST_THREADS = 1024 };

struct configuration {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
};

/* A stack: the arguments of one launch may hold another. */
static _Thread_local struct configuration configurations[DEEPEST];
static _Thread_local int depth;

unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
    if (depth == DEEPEST)
        return 1; /* the kernel is not called then */
    configurations[depth++] = (struct configuration){grid, block, shared, stream};
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, cudaStream_t *stream) {
    if (depth == 0)
        return rt_done(cudaErrorMissingConfiguration);
    const struct configuration *const top = &configurations[--depth];
    *grid = top->grid;
    *block = top->block;
    *shared = top->shared;
    *stream = top->stream;
    return cudaSuccess;
}

/* What the driver calls an invalid value, the runtime says more exactly. */
static cudaError_t explain(CUresult result, dim3 grid, dim3 block) {
    const uint64_t threads = (uint64_t)block.x * block.y * block.z;
    const bool none = threads == 0 || (uint64_t)grid.x * grid.y == 0 || grid.z == 0;
    const bool many = threads > MOST_THREADS || block.x > MOST_THREADS || block.y > MOST_THREADS || block.z > 64;
    if (result == CUDA_ERROR_INVALID_VALUE && (none || many))
        return cudaErrorInvalidConfiguration;
    return result == CUDA_ERROR_INVALID_HANDLE ? cudaErrorInvalidDeviceFunction : result;
}

/* A launch finds its kernel first, and needs a context for both. */
static cudaError_t prepare(const void *function, CUfunction *kernel) {
    CUkernel found = NULL;
    cudaError_t result = rt_ready();
    if (result == cudaSuccess)
        result = rt_kernel(function, &found);
    *kernel = (CUfunction)found;
    return result;
}

cudaError_t rt_cudaLaunchKernel(bool per_thread, const void *function, dim3 grid, dim3 block, void **arguments,
                                size_t shared, cudaStream_t stream) {
    CUfunction kernel;
    const cudaError_t result = prepare(function, &kernel);
    if (result != cudaSuccess)
        return result;
    return explain(rt_calls[per_thread].cuLaunchKernel(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                                       (unsigned int)shared, stream, arguments, NULL),
                   grid, block);
}

cudaError_t rt___cudaLaunchKernel(bool per_thread, cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                                  size_t shared, cudaStream_t stream) {
    return rt_cudaLaunchKernel(per_thread, kernel, grid, block, arguments, shared, stream);
}

cudaError_t rt_cudaLaunchCooperativeKernel(bool per_thread, const void *function, dim3 grid, dim3 block,
                                           void **arguments, size_t shared, cudaStream_t stream) {
    CUfunction kernel;
    const cudaError_t result = prepare(function, &kernel);
    if (result != cudaSuccess)
        return result;
    return explain(rt_calls[per_thread].cuLaunchCooperativeKernel(kernel, grid.x, grid.y, grid.z, block.x, block.y,
                                                                  block.z, (unsigned int)shared, stream, arguments),
                   grid, block);
}

cudaError_t rt_cudaLaunchKernelExC(bool per_thread, const cudaLaunchConfig_t *config, const void *function,
                                   void **arguments) {
    CUfunction kernel;
    if (config == NULL)
        return cudaErrorInvalidValue;
    const cudaError_t result = prepare(function, &kernel);
    if (result != cudaSuccess)
        return result;
    const dim3 grid = config->gridDim, block = config->blockDim;
    const CUlaunchConfig made = {grid.x,
                                 grid.y,
                                 grid.z,
                                 block.x,
                                 block.y,
                                 block.z,
                                 (unsigned int)config->dynamicSmemBytes,
                                 config->stream,
                                 config->attrs,
                                 config->numAttrs};
    return explain(rt_calls[per_thread].cuLaunchKernelEx(&made, kernel, arguments, NULL), grid, block);
}
