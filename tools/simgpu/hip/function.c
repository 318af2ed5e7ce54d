/* What the runtime says of a kernel: the numbers that its metadata would say, which need not be those of the hardware. */
#include "hip.h"

/* Of the function for a host address on this thread's device; also of a hipFunction_t itself. */
hipError_t hip_image(const void *host, const struct kernel_image **image, const struct gpu **gpu) {
    hipFunction_t handle = NULL;
    hipError_t result = hip_function(host, hip_device_of(NULL), &handle);
    if (result == hipErrorInvalidDeviceFunction) {
        handle = (hipFunction_t)(uintptr_t)host;
        result = hipSuccess;
    }
    return result == hipSuccess ? hip_image_of(handle, image, gpu) : result;
}

hipError_t hip_image_of(hipFunction_t handle, const struct kernel_image **image, const struct gpu **gpu) {
    SIM_CALL_IN_CONTEXT(context);
    struct function *function;
    if (sim_function_of(handle, context, true, &function) != CUDA_SUCCESS)
        return hipErrorInvalidDeviceFunction;
    *image = function->image;
    *gpu = sim_gpu_of(function);
    return hipSuccess;
}

/* Dynamic shared memory that is left beside the static one. */
static int static_limit(const struct kernel_image *image, const struct gpu *gpu) {
    return image->static_shared < gpu->shared ? gpu->shared - image->static_shared : 0;
}

static int max_threads(const struct kernel_image *image) {
    return image->bound_written ? image->max_threads : MAX_BLOCK_THREADS;
}

hipError_t hip_hipFuncGetAttributes(hipFuncAttributes *attributes, const void *host) {
    const struct kernel_image *image;
    const struct gpu *gpu;
    const hipError_t result = hip_image(host, &image, &gpu);
    if (attributes == NULL)
        return hipErrorInvalidValue;
    if (result != hipSuccess)
        return result;
    *attributes = (hipFuncAttributes){
        .maxDynamicSharedSizeBytes = static_limit(image, gpu),
        .maxThreadsPerBlock = max_threads(image),
        .numRegs = image->said_registers,
        .sharedSizeBytes = (size_t)image->static_shared,
    };
    return hipSuccess;
}

hipError_t hip_hipFuncGetAttribute(int *value, int id, hipFunction_t function) {
    const struct kernel_image *image;
    const struct gpu *gpu;
    hipError_t result = hip_ready();
    if (result == hipSuccess)
        result = hip_image_of(function, &image, &gpu);
    if (value == NULL)
        return hipErrorInvalidValue;
    if (result != hipSuccess)
        return hipErrorInvalidHandle;
    if (sim_config.no_attributes.glob != NULL && sim_glob(sim_config.no_attributes.glob, image->name))
        return (hipError_t)sim_config.no_attributes.number;
    switch (id) {
    case FUNC_MAX_THREADS:
        *value = max_threads(image);
        return hipSuccess;
    case FUNC_SHARED_SIZE:
        *value = image->static_shared;
        return hipSuccess;
    case FUNC_NUM_REGS:
        *value = image->said_registers;
        return hipSuccess;
    case FUNC_MAX_DYNAMIC:
        *value = static_limit(image, gpu);
        return hipSuccess;
    default:
        return hipErrorInvalidValue;
    }
}

const char *hip_hipKernelNameRef(hipFunction_t function) {
    const struct kernel_image *image;
    const struct gpu *gpu;
    if (hip_ready() != hipSuccess || hip_image_of(function, &image, &gpu) != hipSuccess)
        return NULL;
    return image->name;
}

const char *hip_hipKernelNameRefByPtr(const void *host, hipStream_t stream) {
    hipFunction_t function;
    return hip_function(host, hip_device_of(stream), &function) == hipSuccess ? hip_hipKernelNameRef(function) : NULL;
}

/* ---- occupancy: of the hardware, which the real runtime does not count in every unit (../occupancy.c) ---- */

int hip_occupancy(const struct kernel_image *image, const struct gpu *gpu, int threads, size_t dynamic) {
    return sim_occupancy(gpu, &(struct footprint){.threads = threads,
                                                  .registers = image->registers,
                                                  .scalars = image->scalars,
                                                  .static_shared = image->static_shared,
                                                  .dynamic = dynamic});
}

typedef hipError_t find_image(const void *function, const struct kernel_image **image, const struct gpu **gpu);

static hipError_t of_handle(const void *function, const struct kernel_image **image, const struct gpu **gpu) {
    const hipError_t result = hip_ready();
    return result != hipSuccess ? result : hip_image_of((hipFunction_t)(uintptr_t)function, image, gpu);
}

static hipError_t of_host(const void *function, const struct kernel_image **image, const struct gpu **gpu) {
    hipFunction_t handle;
    const hipError_t result = hip_function(function, hip_device_of(NULL), &handle);
    return result != hipSuccess ? result : hip_image_of(handle, image, gpu);
}

static hipError_t active_blocks(int *blocks, find_image *find, const void *function, int threads, size_t dynamic) {
    const struct kernel_image *image;
    const struct gpu *gpu;
    if (blocks == NULL || threads <= 0)
        return hipErrorInvalidValue;
    const hipError_t result = find(function, &image, &gpu);
    if (result == hipSuccess)
        *blocks = threads <= MAX_BLOCK_THREADS ? hip_occupancy(image, gpu, threads, dynamic) : 0;
    return result;
}

static hipError_t potential(int *grid, int *block, find_image *find, const void *function, size_t dynamic, int limit) {
    const struct kernel_image *image;
    const struct gpu *gpu;
    if (grid == NULL || block == NULL)
        return hipErrorInvalidValue;
    const hipError_t result = find(function, &image, &gpu);
    if (result != hipSuccess)
        return result;
    const int threads = limit <= 0 || limit > MAX_BLOCK_THREADS ? MAX_BLOCK_THREADS : limit;
    *grid = hip_occupancy(image, gpu, threads, dynamic) * gpu->multiprocessors;
    *block = threads;
    return hipSuccess;
}

hipError_t hip_hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, hipFunction_t function, int threads,
                                                                  size_t dynamic) {
    return active_blocks(blocks, of_handle, function, threads, dynamic);
}

hipError_t hip_hipOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int threads,
                                                            size_t dynamic) {
    return active_blocks(blocks, of_host, function, threads, dynamic);
}

hipError_t hip_hipModuleOccupancyMaxPotentialBlockSize(int *grid, int *block, hipFunction_t function, size_t dynamic,
                                                       int limit) {
    return potential(grid, block, of_handle, function, dynamic, limit);
}

hipError_t hip_hipOccupancyMaxPotentialBlockSize(int *grid, int *block, const void *function, size_t dynamic,
                                                 int limit) {
    return potential(grid, block, of_host, function, dynamic, limit);
}

/* The first version of the real one leaves the static shared memory out, too. */
hipError_t hip_hipOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *function, int blocks, int threads) {
    const struct kernel_image *image;
    const struct gpu *gpu;
    if (bytes == NULL || blocks <= 0 || threads <= 0 || threads > MAX_BLOCK_THREADS)
        return hipErrorInvalidValue;
    const hipError_t result = of_host(function, &image, &gpu);
    if (result != hipSuccess)
        return result;
    if (hip_occupancy(image, gpu, threads, 0) < blocks)
        return hipErrorInvalidValue;
    *bytes = (size_t)gpu->shared / (size_t)blocks;
    return hipSuccess;
}
