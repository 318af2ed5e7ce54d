/* Attributes, names and parameters of functions and kernels.
 *
 * A CUkernel passed where a CUfunction is asked for is CUDA_ERROR_INVALID_HANDLE, except in launches, as on the
 * real driver. A function that comes from a kernel follows the kernel's attribute for its device until its own is set.
 */
#include <stdlib.h>

#include "sim.h"

CUresult sim_function_of(CUfunction handle, struct context *context, bool kernels_too, struct function **out) {
    *out = sim_handle_get(handle, KIND_FUNCTION);
    if (*out != NULL)
        return CUDA_SUCCESS;
    struct kernel *const kernel = kernels_too ? sim_handle_get(handle, KIND_KERNEL) : NULL;
    return kernel != NULL ? sim_kernel_function(kernel, context, out) : CUDA_ERROR_INVALID_HANDLE;
}

static int default_dynamic(const struct kernel_image *image) {
    return image->static_shared < DEFAULT_DYNAMIC ? DEFAULT_DYNAMIC - image->static_shared : 0;
}

int sim_max_dynamic(const struct function *function) {
    if (function->max_dynamic >= 0)
        return function->max_dynamic;
    const int device = function->module->context->device;
    if (function->kernel != NULL && function->kernel->max_dynamic[device] >= 0)
        return function->kernel->max_dynamic[device];
    return default_dynamic(function->image);
}

int sim_max_dynamic_possible(const struct kernel_image *image, const struct gpu *gpu) {
    return image->static_shared < gpu->shared_optin ? gpu->shared_optin - image->static_shared : 0;
}

int sim_max_threads(const struct kernel_image *image, const struct gpu *gpu) {
    int threads = image->bound_written ? image->max_threads : MAX_BLOCK_THREADS;
    if (image->registers > 0) {
        const int warps = gpu->registers / sim_registers_of_warp(image->registers) / PARTITIONS * PARTITIONS;
        threads = warps * WARP < threads ? warps * WARP : threads;
    }
    return threads;
}

static CUresult get_attribute(int *value, int id, const struct kernel_image *image) {
    const struct gpu *const gpu = sim_config.gpu;
    switch (id) {
    case FUNC_MAX_THREADS:
        *value = sim_max_threads(image, gpu);
        return CUDA_SUCCESS;
    case FUNC_SHARED_SIZE:
        *value = image->static_shared;
        return CUDA_SUCCESS;
    case FUNC_CONST_SIZE:
        *value = image->constant;
        return CUDA_SUCCESS;
    case FUNC_LOCAL_SIZE:
        *value = image->local;
        return CUDA_SUCCESS;
    case FUNC_NUM_REGS:
        *value = image->registers;
        return CUDA_SUCCESS;
    case FUNC_PTX_VERSION:
    case FUNC_BINARY_VERSION:
        *value = gpu->major * 10 + gpu->minor;
        return CUDA_SUCCESS;
    case FUNC_CACHE_MODE_CA:
        *value = 0;
        return CUDA_SUCCESS;
    case FUNC_CLUSTER_MUST_BE_SET:
        *value = 0;
        return CUDA_SUCCESS;
    case FUNC_CLUSTER_WIDTH:
    case FUNC_CLUSTER_HEIGHT:
    case FUNC_CLUSTER_DEPTH:
        *value = image->cluster[id - FUNC_CLUSTER_WIDTH];
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static bool is_carveout(int value) {
    return value >= -1 && value <= 100;
}

SIM_API CUresult cuFuncGetAttribute(int *value, int id, CUfunction handle) {
    SIM_CALL();
    const struct function *const function = sim_handle_get(handle, KIND_FUNCTION);
    if (function == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (value == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const int device = function->module->context->device;
    switch (id) {
    case FUNC_MAX_DYNAMIC:
        *value = sim_max_dynamic(function);
        return CUDA_SUCCESS;
    case FUNC_CARVEOUT:
        *value = function->carveout >= 0 || function->kernel == NULL ? function->carveout
                                                                     : function->kernel->carveout[device];
        return CUDA_SUCCESS;
    case FUNC_NON_PORTABLE_CLUSTER:
        *value = function->non_portable_cluster;
        return CUDA_SUCCESS;
    case FUNC_CLUSTER_POLICY:
        *value = function->cluster_policy;
        return CUDA_SUCCESS;
    default:
        return get_attribute(value, id, function->image);
    }
}

SIM_API CUresult cuFuncSetAttribute(CUfunction handle, int id, int value) {
    SIM_CALL();
    struct function *const function = sim_handle_get(handle, KIND_FUNCTION);
    if (function == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    switch (id) {
    case FUNC_MAX_DYNAMIC:
        if (value < 0 || value > sim_max_dynamic_possible(function->image, sim_config.gpu))
            return CUDA_ERROR_INVALID_VALUE;
        function->max_dynamic = value;
        return CUDA_SUCCESS;
    case FUNC_CARVEOUT:
        if (!is_carveout(value))
            return CUDA_ERROR_INVALID_VALUE;
        function->carveout = value;
        return CUDA_SUCCESS;
    case FUNC_NON_PORTABLE_CLUSTER:
        function->non_portable_cluster = value != 0;
        return CUDA_SUCCESS;
    case FUNC_CLUSTER_POLICY:
        function->cluster_policy = value;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

SIM_API CUresult cuKernelGetAttribute(int *value, int id, CUkernel handle, CUdevice device) {
    SIM_CALL();
    const struct kernel *const kernel = sim_handle_get(handle, KIND_KERNEL);
    if (kernel == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (value == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (sim_device_check(device) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_DEVICE;
    switch (id) {
    case FUNC_MAX_DYNAMIC:
        *value = kernel->max_dynamic[device] >= 0 ? kernel->max_dynamic[device] : default_dynamic(kernel->image);
        return CUDA_SUCCESS;
    case FUNC_CARVEOUT:
        *value = kernel->carveout[device];
        return CUDA_SUCCESS;
    case FUNC_NON_PORTABLE_CLUSTER:
    case FUNC_CLUSTER_POLICY:
        *value = 0;
        return CUDA_SUCCESS;
    default:
        return get_attribute(value, id, kernel->image);
    }
}

SIM_API CUresult cuKernelSetAttribute(int id, int value, CUkernel handle, CUdevice device) {
    SIM_CALL();
    struct kernel *const kernel = sim_handle_get(handle, KIND_KERNEL);
    if (kernel == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (sim_device_check(device) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_DEVICE;
    switch (id) {
    case FUNC_MAX_DYNAMIC:
        if (value < 0 || value > sim_max_dynamic_possible(kernel->image, sim_config.gpu))
            return CUDA_ERROR_INVALID_VALUE;
        kernel->max_dynamic[device] = value;
        return CUDA_SUCCESS;
    case FUNC_CARVEOUT:
        if (!is_carveout(value))
            return CUDA_ERROR_INVALID_VALUE;
        kernel->carveout[device] = value;
        return CUDA_SUCCESS;
    case FUNC_NON_PORTABLE_CLUSTER:
    case FUNC_CLUSTER_POLICY:
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

SIM_API CUresult cuFuncGetName(const char **name, CUfunction handle) {
    SIM_CALL();
    const struct function *const function = sim_handle_get(handle, KIND_FUNCTION);
    if (name == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (function == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    *name = function->image->name;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuKernelGetName(const char **name, CUkernel handle) {
    SIM_CALL();
    const struct kernel *const kernel = sim_handle_get(handle, KIND_KERNEL);
    if (name == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (kernel == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    *name = kernel->image->name;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuFuncGetModule(CUmodule *out, CUfunction handle) {
    SIM_CALL();
    const struct function *const function = sim_handle_get(handle, KIND_FUNCTION);
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (function == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    *out = function->module->handle;
    return CUDA_SUCCESS;
}

static CUresult get_parameter(const struct kernel_image *image, size_t index, size_t *offset, size_t *size) {
    if (offset == NULL || index >= image->parameters)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = image->parameter[index].offset;
    if (size != NULL)
        *size = image->parameter[index].size;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuFuncGetParamInfo(CUfunction handle, size_t index, size_t *offset, size_t *size) {
    SIM_CALL();
    const struct function *const function = sim_handle_get(handle, KIND_FUNCTION);
    return function != NULL ? get_parameter(function->image, index, offset, size) : CUDA_ERROR_INVALID_HANDLE;
}

SIM_API CUresult cuKernelGetParamInfo(CUkernel handle, size_t index, size_t *offset, size_t *size) {
    SIM_CALL();
    const struct kernel *const kernel = sim_handle_get(handle, KIND_KERNEL);
    return kernel != NULL ? get_parameter(kernel->image, index, offset, size) : CUDA_ERROR_INVALID_HANDLE;
}

SIM_API CUresult cuFuncIsLoaded(int *state, CUfunction handle) {
    SIM_CALL();
    if (state == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *state = 1;
    return sim_handle_get(handle, KIND_FUNCTION) != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

SIM_API CUresult cuFuncLoad(CUfunction handle) {
    SIM_CALL();
    return sim_handle_get(handle, KIND_FUNCTION) != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

SIM_API CUresult cuFuncSetCacheConfig(CUfunction handle, int config) {
    SIM_CALL();
    if (config < 0 || config > 3)
        return CUDA_ERROR_INVALID_VALUE;
    return sim_handle_get(handle, KIND_FUNCTION) != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

SIM_API CUresult cuKernelSetCacheConfig(CUkernel handle, int config, CUdevice device) {
    SIM_CALL();
    if (config < 0 || config > 3)
        return CUDA_ERROR_INVALID_VALUE;
    if (sim_handle_get(handle, KIND_KERNEL) == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    return sim_device_check(device);
}

SIM_API CUresult cuFuncSetSharedMemConfig(CUfunction handle, int config) {
    SIM_CALL();
    if (config < 0 || config > 2)
        return CUDA_ERROR_INVALID_VALUE;
    return sim_handle_get(handle, KIND_FUNCTION) != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
