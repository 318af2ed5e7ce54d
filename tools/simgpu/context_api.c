/* Questions about a context, and waiting for all of it. */
#include <stdlib.h>

#include "sim.h"

enum { LIMITS = 10 };

SIM_API CUresult cuCtxGetDevice(CUdevice *device) {
    SIM_CALL_IN_CONTEXT(context);
    if (device == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *device = context->device;
    return CUDA_SUCCESS;
}

static struct context *named_or_current(CUcontext handle) {
    return handle != NULL ? sim_context_of(handle) : sim_current_context();
}

SIM_API CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext handle) {
    SIM_CALL();
    const struct context *const context = named_or_current(handle);
    if (device == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (context == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    *device = context->device;
    return CUDA_SUCCESS;
}

static CUresult synchronize(struct context *context) {
    const CUresult forbidden = sim_capture_forbids();
    if (forbidden != CUDA_SUCCESS)
        return forbidden;
    const CUresult result = sim_context_drain(context);
    sim_log_flush();
    return result;
}

SIM_API CUresult cuCtxSynchronize(void) {
    SIM_CALL_IN_CONTEXT(context);
    return synchronize(context);
}

SIM_API CUresult cuCtxSynchronize_v2(CUcontext handle) {
    SIM_CALL();
    struct context *const context = named_or_current(handle);
    return context != NULL ? synchronize(context) : CUDA_ERROR_INVALID_CONTEXT;
}

SIM_API CUresult cuCtxGetFlags(unsigned int *flags) {
    SIM_CALL_IN_CONTEXT(context);
    if (flags == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = context->flags;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxSetFlags(unsigned int flags) {
    SIM_CALL_IN_CONTEXT(context);
    context->flags = flags;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxGetId(CUcontext handle, unsigned long long *id) {
    SIM_CALL();
    const struct context *const context = named_or_current(handle);
    if (id == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (context == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    *id = context->id;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxGetApiVersion(CUcontext handle, unsigned int *version) {
    SIM_CALL();
    if (version == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (handle != NULL && sim_context_of(handle) == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    *version = 3020;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    SIM_CALL_IN_CONTEXT(context);
    if (least != NULL)
        *least = LEAST_PRIORITY;
    if (greatest != NULL)
        *greatest = GREATEST_PRIORITY;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxGetLimit(size_t *value, int limit) {
    SIM_CALL_IN_CONTEXT(context);
    if (value == NULL || limit < 0 || limit >= LIMITS)
        return CUDA_ERROR_INVALID_VALUE;
    *value = context->limits[limit];
    return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxSetLimit(int limit, size_t value) {
    SIM_CALL_IN_CONTEXT(context);
    if (limit < 0 || limit >= LIMITS)
        return CUDA_ERROR_INVALID_VALUE;
    context->limits[limit] = value;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxGetCacheConfig(int *config) {
    SIM_CALL_IN_CONTEXT(context);
    if (config == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *config = context->cache_config;
    return CUDA_SUCCESS;
}

/* A preference: kept, and nothing follows from it. */
SIM_API CUresult cuCtxSetCacheConfig(int config) {
    SIM_CALL_IN_CONTEXT(context);
    if (config < 0 || config > 3)
        return CUDA_ERROR_INVALID_VALUE;
    context->cache_config = config;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxGetSharedMemConfig(int *config) {
    SIM_CALL_IN_CONTEXT(context);
    if (config == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *config = 1;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxSetSharedMemConfig(int config) {
    SIM_CALL_IN_CONTEXT(context);
    return config >= 0 && config <= 2 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
    SIM_CALL_IN_CONTEXT(context);
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    return sim_context_of(peer) != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

SIM_API CUresult cuCtxDisablePeerAccess(CUcontext peer) {
    SIM_CALL_IN_CONTEXT(context);
    return sim_context_of(peer) != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}
