/* Green contexts, as far as calls of them are passed on: the primary context of a device under another handle, with a default
 * stream of its own. Their kernels may use all multiprocessors. */
#include <stdlib.h>

#include "sim.h"

enum { GREEN_DEFAULT_STREAM = 1 };

SIM_API CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource *out, int type) {
    SIM_CALL();
    if (out == NULL || type != RESOURCE_SM || sim_device_check(device) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUdevResource){.type = type, .of.sm.smCount = (unsigned int)sim_gpu(device)->multiprocessors};
    return CUDA_SUCCESS;
}

SIM_API CUresult cuDevSmResourceSplitByCount(CUdevResource *out, unsigned int *groups, const CUdevResource *input,
                                             CUdevResource *remaining, unsigned int flags, unsigned int wanted) {
    SIM_CALL();
    if (groups == NULL || input == NULL || flags != 0 || wanted < 1 || wanted > input->of.sm.smCount)
        return CUDA_ERROR_INVALID_VALUE;
    const unsigned int possible = input->of.sm.smCount / wanted;
    *groups = out == NULL || *groups > possible ? possible : *groups;
    for (unsigned int i = 0; out != NULL && i < *groups; i++)
        out[i] = (CUdevResource){.type = RESOURCE_SM, .of.sm.smCount = wanted};
    if (remaining != NULL)
        *remaining = (CUdevResource){.type = RESOURCE_SM, .of.sm.smCount = input->of.sm.smCount - *groups * wanted};
    return CUDA_SUCCESS;
}

/* The interface has nothing that would free it. */
SIM_API CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *out, const CUdevResource *parts, unsigned int count) {
    static char anything;
    SIM_CALL();
    if (out == NULL || parts == NULL || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    *out = sim_handle_new(KIND_RESOURCES, &anything);
    return CUDA_SUCCESS;
}

void sim_green_free(struct green *green) {
    SIM_UNLINK(green->context->greens, green);
    sim_stream_free(green->stream);
    sim_handle_free(green->handle);
    free(green);
}

SIM_API CUresult cuGreenCtxCreate(CUcontext *out, CUdevResourceDesc desc, CUdevice device, unsigned int flags) {
    SIM_CALL();
    if (out == NULL || sim_handle_get(desc, KIND_RESOURCES) == NULL || flags != GREEN_DEFAULT_STREAM)
        return CUDA_ERROR_INVALID_VALUE;
    if (sim_device_check(device) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_DEVICE;
    struct green *const green = sim_new(1, sizeof *green);
    struct context *const context = sim_primary_retain(device);
    *green = (struct green){.handle = sim_handle_new(KIND_GREEN, green),
                            .context = context,
                            .stream = sim_stream_new(context, STREAM_NON_BLOCKING, NORMAL_PRIORITY),
                            .next = context->greens};
    green->stream->green = green->handle;
    green->stream->of_green = true;
    context->greens = green;
    *out = green->handle;
    return CUDA_SUCCESS;
}

/* Streams that the program made in it stay (cuda.h). */
SIM_API CUresult cuGreenCtxDestroy(CUcontext handle) {
    SIM_CALL();
    struct green *const green = sim_handle_get(handle, KIND_GREEN);
    if (green == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    const int device = green->context->device;
    sim_green_free(green);
    sim_primary_release(device);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxFromGreenCtx(CUcontext *out, CUcontext handle) {
    SIM_CALL();
    if (out == NULL || sim_handle_get(handle, KIND_GREEN) == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    *out = handle;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuGreenCtxStreamCreate(CUstream *out, CUcontext handle, unsigned int flags, int priority) {
    SIM_CALL();
    const struct green *const green = sim_handle_get(handle, KIND_GREEN);
    if (green == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (out == NULL || flags != STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    struct stream *const stream = sim_stream_new(green->context, flags, priority);
    stream->green = handle;
    *out = stream->handle;
    return CUDA_SUCCESS;
}
