/* Contexts: primary ones and others, the stack of each thread; what a program asks about one, and waiting for all of it. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum { STACK = 64, LEGACY_NUMBER = 7 /* as CUPTI has it */ };

static _Thread_local CUcontext stack[STACK];
static _Thread_local int depth;

static struct {
    struct context *context;
    unsigned int references;
} primary[MAX_DEVICES];

/* The context behind a handle: of a green one, the primary context that it is a part of. */
struct context *sim_context_of(CUcontext handle) {
    const struct green *const green = sim_handle_get(handle, KIND_GREEN);
    return green != NULL ? green->context : sim_handle_get(handle, KIND_CONTEXT);
}

struct context *sim_current_context(void) {
    return depth > 0 ? sim_context_of(stack[depth - 1]) : NULL;
}

struct green *sim_current_green(void) {
    return depth > 0 ? sim_handle_get(stack[depth - 1], KIND_GREEN) : NULL;
}

CUresult sim_context_check(const struct context *context) {
    return context == NULL  ? CUDA_ERROR_INVALID_CONTEXT
           : context->ended ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                            : CUDA_SUCCESS;
}

static void begin(struct context *context) {
    context->ended = false;
    context->cache_config = 0;
    context->legacy = sim_stream_new(context, 0, NORMAL_PRIORITY);
    context->legacy->legacy = true;
    context->legacy->number = LEGACY_NUMBER;
}

static struct context *context_new(CUdevice device) {
    struct context *const context = sim_new(1, sizeof *context);
    context->handle = sim_handle_new(KIND_CONTEXT, context);
    context->device = device;
    begin(context);
    return context;
}

static void end(struct context *context) {
    sim_context_drain(context);
    sim_trace_flush();
    while (context->greens != NULL)
        sim_green_free(context->greens);
    while (context->modules != NULL)
        sim_module_free(context->modules);
    sim_context_free_work(context);
    context->ended = true;
}

static void context_free(struct context *context) {
    end(context);
    sim_handle_free(context->handle);
    for (int i = 0; i < depth; i++)
        if (stack[i] == context->handle)
            stack[i] = NULL;
    while (depth > 0 && stack[depth - 1] == NULL)
        depth--;
    free(context);
}

static CUresult push(CUcontext handle) {
    if (depth == STACK)
        return CUDA_ERROR_INVALID_CONTEXT;
    stack[depth++] = handle;
    return CUDA_SUCCESS;
}

static CUresult create(CUcontext *out, unsigned int flags, CUdevice device) {
    SIM_CALL();
    (void)flags; /* how the host waits */
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (sim_device_check(device) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_DEVICE;
    const struct context *const context = context_new(device);
    *out = context->handle;
    return push(context->handle);
}

SIM_ENTRY(cuCtxCreate, create, (CUcontext * out, unsigned int flags, CUdevice device), out, flags, device)
SIM_ENTRY(cuCtxCreate_v2, create, (CUcontext * out, unsigned int flags, CUdevice device), out, flags, device)

SIM_API CUresult cuCtxCreate_v3(CUcontext *out, void *affinity, int count, unsigned int flags, CUdevice device) {
    (void)affinity;
    return count == 0 ? create(out, flags, device) : CUDA_ERROR_NOT_SUPPORTED;
}

SIM_API CUresult cuCtxCreate_v4(CUcontext *out, void *parameters, unsigned int flags, CUdevice device) {
    (void)parameters;
    return create(out, flags, device);
}

SIM_API CUresult cuCtxDestroy_v2(CUcontext handle) {
    SIM_CALL();
    struct context *const context = sim_handle_get(handle, KIND_CONTEXT);
    if (context == NULL || context->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    context_free(context);
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuCtxDestroy, cuCtxDestroy_v2, (CUcontext handle), handle)

SIM_API CUresult cuCtxAttach(CUcontext *out, unsigned int flags) {
    SIM_CALL_IN_CONTEXT(context);
    if (out == NULL || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    context->attached++;
    *out = context->handle;
    return CUDA_SUCCESS;
}

/* Of the current context; the last one destroys it (cuda.h 13.0). */
SIM_API CUresult cuCtxDetach(CUcontext handle) {
    SIM_CALL();
    struct context *const context = sim_handle_get(handle, KIND_CONTEXT);
    if (context == NULL || context->primary || context != sim_current_context())
        return CUDA_ERROR_INVALID_CONTEXT;
    if (context->attached == 0)
        context_free(context);
    else
        context->attached--;
    return CUDA_SUCCESS;
}

/* A primary context that ends keeps its address, and stays current where it is; a reset does not change how often it is
 * retained (measured: 580.159). */
struct context *sim_primary_retain(CUdevice device) {
    struct context *context = primary[device].context;
    if (context == NULL) {
        context = primary[device].context = context_new(device);
        context->primary = true;
    } else if (context->ended)
        begin(context);
    primary[device].references++;
    return context;
}

static bool is_active(CUdevice device) {
    return sim_context_check(primary[device].context) == CUDA_SUCCESS;
}

void sim_primary_release(CUdevice device) {
    if (--primary[device].references == 0 && is_active(device))
        end(primary[device].context);
}

SIM_API CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device) {
    SIM_CALL();
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (sim_device_check(device) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_DEVICE;
    *out = sim_primary_retain(device)->handle;
    return CUDA_SUCCESS;
}

static CUresult release(CUdevice device) {
    SIM_CALL();
    if (sim_device_check(device) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_DEVICE;
    if (primary[device].references == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    sim_primary_release(device);
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuDevicePrimaryCtxRelease, release, (CUdevice device), device)
SIM_ENTRY(cuDevicePrimaryCtxRelease_v2, release, (CUdevice device), device)

static CUresult reset(CUdevice device) {
    SIM_CALL();
    if (sim_device_check(device) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_DEVICE;
    if (is_active(device))
        end(primary[device].context);
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuDevicePrimaryCtxReset, reset, (CUdevice device), device)
SIM_ENTRY(cuDevicePrimaryCtxReset_v2, reset, (CUdevice device), device)

SIM_API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active) {
    SIM_CALL();
    if (flags == NULL || active == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (sim_device_check(device) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_DEVICE;
    *flags = 0;
    *active = is_active(device);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxPushCurrent_v2(CUcontext handle) {
    SIM_CALL();
    return sim_context_of(handle) != NULL ? push(handle) : CUDA_ERROR_INVALID_CONTEXT;
}
SIM_ENTRY(cuCtxPushCurrent, cuCtxPushCurrent_v2, (CUcontext handle), handle)

SIM_API CUresult cuCtxPopCurrent_v2(CUcontext *out) {
    SIM_CALL();
    if (depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    depth--;
    if (out != NULL)
        *out = stack[depth];
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuCtxPopCurrent, cuCtxPopCurrent_v2, (CUcontext * out), out)

SIM_API CUresult cuCtxSetCurrent(CUcontext handle) {
    SIM_CALL();
    if (handle != NULL && sim_context_of(handle) == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (depth > 0)
        depth--;
    return handle != NULL ? push(handle) : CUDA_SUCCESS;
}

SIM_API CUresult cuCtxGetCurrent(CUcontext *out) {
    SIM_CALL();
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = sim_current_context() != NULL ? stack[depth - 1] : NULL;
    return CUDA_SUCCESS;
}

/* ---- questions about a context ---- */

/* One that has ended has its device still. */
SIM_API CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext handle) {
    SIM_CALL();
    const struct context *const context = handle != NULL ? sim_context_of(handle) : sim_current_context();
    if (context == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (device == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *device = context->device;
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuCtxGetDevice, cuCtxGetDevice_v2, (CUdevice * device), device, NULL)

static CUresult synchronize(struct context *context) {
    const CUresult forbidden = sim_capture_forbids();
    if (forbidden != CUDA_SUCCESS)
        return forbidden;
    const CUresult result = sim_context_drain(context);
    sim_trace_wait("Context Sync", context->device, NULL, NULL);
    sim_trace_flush();
    return result;
}

SIM_API CUresult cuCtxSynchronize(void) {
    SIM_NAMED(__func__);
    SIM_CALL_IN_CONTEXT(context);
    return synchronize(context);
}

SIM_API CUresult cuCtxSynchronize_v2(CUcontext handle) {
    SIM_NAMED(__func__);
    SIM_CALL();
    struct context *const context = handle != NULL ? sim_context_of(handle) : sim_current_context();
    const CUresult usable = sim_context_check(context);
    return usable == CUDA_SUCCESS ? synchronize(context) : usable;
}

SIM_API CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    SIM_CALL_IN_CONTEXT(context);
    if (least != NULL)
        *least = LEAST_PRIORITY;
    if (greatest != NULL)
        *greatest = GREATEST_PRIORITY;
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
