/* What the runtime says of a kernel. Numbers are those of its metadata, not of its descriptor. */
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
int hip_static_limit(const struct kernel_image *image, const struct gpu *gpu) {
    return image->static_shared < gpu->shared ? gpu->shared - image->static_shared : 0;
}

static int version_of(const struct gpu *gpu) {
    return gpu->major * 10 + gpu->minor;
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
        .binaryVersion = version_of(gpu),
        .localSizeBytes = (size_t)image->local,
        .maxDynamicSharedSizeBytes = hip_static_limit(image, gpu),
        .maxThreadsPerBlock = max_threads(image),
        .numRegs = image->said_registers,
        .ptxVersion = 30,
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
    case FUNC_LOCAL_SIZE:
        *value = image->local;
        return hipSuccess;
    case FUNC_NUM_REGS:
        *value = image->said_registers;
        return hipSuccess;
    case FUNC_PTX_VERSION:
    case FUNC_BINARY_VERSION:
        *value = version_of(gpu);
        return hipSuccess;
    case FUNC_CONST_SIZE:
    case FUNC_CACHE_MODE_CA:
    case FUNC_CARVEOUT:
        *value = 0;
        return hipSuccess;
    case FUNC_MAX_DYNAMIC:
        *value = hip_static_limit(image, gpu);
        return hipSuccess;
    default:
        return hipErrorInvalidValue;
    }
}

/* Looked at, and without effect on launches; 5.2 did not even look. */
hipError_t hip_hipFuncSetAttribute(const void *host, int id, int value) {
    const struct kernel_image *image;
    const struct gpu *gpu;
    if (host == NULL)
        return hipErrorInvalidDeviceFunction;
    if (id < 0 || id > FUNC_CARVEOUT + 1)
        return hipErrorInvalidValue;
    const hipError_t result = hip_image(host, &image, &gpu);
    if (result != hipSuccess)
        return result;
    if (id == FUNC_MAX_DYNAMIC && (value < 0 || value > hip_static_limit(image, gpu)))
        return hipErrorInvalidValue;
    return id == FUNC_CARVEOUT && (value < -1 || value > 100) ? hipErrorInvalidValue : hipSuccess;
}

hipError_t hip_hipFuncSetCacheConfig(const void *host, int config) {
    if (host == NULL)
        return hipErrorInvalidDeviceFunction;
    return config >= 0 && config <= 3 ? hipSuccess : hipErrorInvalidValue;
}

hipError_t hip_hipFuncSetSharedMemConfig(const void *host, int config) {
    if (host == NULL)
        return hipErrorInvalidDeviceFunction;
    return config >= 0 && config <= 2 ? hipSuccess : hipErrorInvalidValue;
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
