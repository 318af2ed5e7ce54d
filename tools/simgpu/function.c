/* Functions and kernels: their names, and their attributes.
 *
 * A CUkernel passed where a CUfunction is asked for is CUDA_ERROR_INVALID_HANDLE, except in launches and where
 * occupancy is asked, as on the real driver. A function that comes from a kernel follows what was set on the kernel for its device,
 * until its own is set. What nobody set is what the code says.
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

/* ---- attributes ---- */

void sim_settings_clear(struct settings *settings) {
    for (size_t i = 0; i < FUNC_ATTRIBUTES; i++)
        settings->of[i] = UNSET;
}

const struct gpu *sim_gpu_of(const struct function *function) {
    return sim_gpu(function->module->context->device);
}

int sim_max_threads(const struct kernel_image *image, const struct gpu *gpu) {
    int threads = image->bound_written ? image->max_threads : MAX_BLOCK_THREADS;
    if (image->registers > 0) {
        const int warps = gpu->registers / sim_registers_of_warp(image->registers) / PARTITIONS * PARTITIONS;
        threads = warps * WARP < threads ? warps * WARP : threads;
    }
    return threads;
}

static int of_image(const struct kernel_image *image, const struct gpu *gpu, int id) {
    switch (id) {
    case FUNC_MAX_THREADS:
        return sim_max_threads(image, gpu);
    case FUNC_SHARED_SIZE:
        return image->static_shared;
    case FUNC_NUM_REGS:
        return image->registers;
    case FUNC_PTX_VERSION:
    case FUNC_BINARY_VERSION:
        return gpu->major * 10 + gpu->minor;
    case FUNC_MAX_DYNAMIC:
        return image->static_shared < DEFAULT_DYNAMIC ? DEFAULT_DYNAMIC - image->static_shared : 0;
    case FUNC_CARVEOUT:
        return -1;
    case FUNC_CLUSTER_WIDTH:
    case FUNC_CLUSTER_HEIGHT:
    case FUNC_CLUSTER_DEPTH:
        return image->cluster[id - FUNC_CLUSTER_WIDTH];
    default:
        return 0;
    }
}

int sim_kernel_setting(const struct kernel *kernel, int device, int id) {
    const int set = kernel->settings[device].of[id];
    return set != UNSET ? set : of_image(kernel->images[device], sim_gpu(device), id);
}

int sim_setting(const struct function *function, int id) {
    if (function->settings.of[id] != UNSET)
        return function->settings.of[id];
    if (function->kernel != NULL)
        return sim_kernel_setting(function->kernel, function->module->context->device, id);
    return of_image(function->image, sim_gpu_of(function), id);
}

static CUresult set(struct settings *settings, const struct kernel_image *image, const struct gpu *gpu, int id,
                    int value) {
    const int room = image->static_shared < gpu->shared_optin ? gpu->shared_optin - image->static_shared : 0;
    bool good;
    switch (id) {
    case FUNC_MAX_DYNAMIC:
        good = value >= 0 && value <= room;
        break;
    case FUNC_CARVEOUT:
        good = value >= -1 && value <= 100;
        break;
    case FUNC_CLUSTER_WIDTH:
    case FUNC_CLUSTER_HEIGHT:
    case FUNC_CLUSTER_DEPTH: /* whether they make a cluster is found out at launch */
        if (image->cluster[0] > 0)
            return CUDA_ERROR_NOT_PERMITTED;
        good = value >= 0;
        break;
    case FUNC_NON_PORTABLE_CLUSTER:
        value = value != 0;
        good = true;
        break;
    case FUNC_CLUSTER_POLICY:
        good = value >= 0 && value <= 2;
        break;
    default:
        good = false;
    }
    if (good)
        settings->of[id] = value;
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* SIMGPU_NO_ATTRIBUTES: kernels of which the driver tells nothing, because they are not loaded, say. */
static CUresult untold(const char *kernel) {
    const struct limit *const hidden = &sim_config.no_attributes;
    return hidden->glob != NULL && sim_glob(hidden->glob, kernel) ? (CUresult)hidden->number : CUDA_SUCCESS;
}

SIM_API CUresult cuFuncGetAttribute(int *value, int id, CUfunction handle) {
    SIM_CALL();
    const struct function *const function = sim_handle_get(handle, KIND_FUNCTION);
    if (function == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (value == NULL || id < 0 || id >= FUNC_ATTRIBUTES)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = untold(function->image->name);
    if (result == CUDA_SUCCESS)
        *value = sim_setting(function, id);
    return result;
}

SIM_API CUresult cuFuncSetAttribute(CUfunction handle, int id, int value) {
    SIM_CALL();
    struct function *const function = sim_handle_get(handle, KIND_FUNCTION);
    if (function == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    return set(&function->settings, function->image, sim_gpu_of(function), id, value);
}

static CUresult kernel_of(CUkernel handle, CUdevice device, struct kernel **out) {
    *out = sim_handle_get(handle, KIND_KERNEL);
    if (*out == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (sim_device_check(device) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_DEVICE;
    return (*out)->images[device] != NULL ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

SIM_API CUresult cuKernelGetAttribute(int *value, int id, CUkernel handle, CUdevice device) {
    SIM_CALL();
    struct kernel *kernel;
    CUresult result = kernel_of(handle, device, &kernel);
    if (result != CUDA_SUCCESS)
        return result;
    if (value == NULL || id < 0 || id >= FUNC_ATTRIBUTES)
        return CUDA_ERROR_INVALID_VALUE;
    result = untold(kernel->name);
    if (result == CUDA_SUCCESS)
        *value = sim_kernel_setting(kernel, device, id);
    return result;
}

SIM_API CUresult cuKernelSetAttribute(int id, int value, CUkernel handle, CUdevice device) {
    SIM_CALL();
    struct kernel *kernel;
    const CUresult result = kernel_of(handle, device, &kernel);
    if (result != CUDA_SUCCESS)
        return result;
    return set(&kernel->settings[device], kernel->images[device], sim_gpu(device), id, value);
}
