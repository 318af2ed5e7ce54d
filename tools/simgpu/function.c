/* Names, modules and parameters of functions and kernels.
 *
 * A CUkernel passed where a CUfunction is asked for is CUDA_ERROR_INVALID_HANDLE, except in launches and where
 * occupancy is asked, as on the real driver.
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
    *name = kernel->name;
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
    if (kernel == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    for (size_t i = 0; i < MAX_DEVICES; i++) /* parameters are the same everywhere */
        if (kernel->images[i] != NULL)
            return get_parameter(kernel->images[i], index, offset, size);
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
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
