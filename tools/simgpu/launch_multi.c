/* One cooperative kernel on several devices at once: cuLaunchCooperativeKernelMultiDevice. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum { NO_SYNC_BEFORE = 1, NO_SYNC_AFTER = 2 };

struct part {
    CUlaunchConfig config;
    struct call call;
    struct launching launching;
    struct op *before, *op; /* the last of its stream until now, and its own */
    CUresult result;
};

static bool is_same_shape(const CUDA_LAUNCH_PARAMS *a, const CUDA_LAUNCH_PARAMS *b) {
    return a->gridDimX == b->gridDimX && a->gridDimY == b->gridDimY && a->gridDimZ == b->gridDimZ &&
           a->blockDimX == b->blockDimX && a->blockDimY == b->blockDimY && a->blockDimZ == b->blockDimZ &&
           a->sharedMemBytes == b->sharedMemBytes;
}

/* Its stream says on which device: the default stream, which is every device's, is not allowed. */
static CUresult prepare(struct part *part, const CUDA_LAUNCH_PARAMS *what) {
    part->config = (CUlaunchConfig){what->gridDimX,
                                    what->gridDimY,
                                    what->gridDimZ,
                                    what->blockDimX,
                                    what->blockDimY,
                                    what->blockDimZ,
                                    what->sharedMemBytes,
                                    what->hStream,
                                    NULL,
                                    0};
    part->call = (struct call){.entry = "cuLaunchCooperativeKernelMultiDevice",
                               .config = &part->config,
                               .handle = what->func,
                               .parameters = what->kernelParams,
                               .cooperative = true};
    const struct stream *const stream = sim_handle_get(what->hStream, KIND_STREAM);
    if (stream == NULL) {
        part->launching = (struct launching){.request.handle = what->func};
        return (uintptr_t)what->hStream <= STREAM_PER_THREAD ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    }
    const CUresult result = sim_launch_prepare(&part->call, stream->context, &part->launching);
    return result == CUDA_SUCCESS && stream->capture != NULL ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : result;
}

static CUresult prepare_all(struct part *parts, const CUDA_LAUNCH_PARAMS *list, unsigned int count) {
    bool taken[MAX_DEVICES] = {false};
    CUresult result = CUDA_SUCCESS;
    for (unsigned int i = 0; i < count; i++) {
        struct part *const part = &parts[i];
        part->result = prepare(part, &list[i]);
        if (part->result == CUDA_SUCCESS &&
            (taken[part->launching.stream->context->device] || !is_same_shape(&list[i], &list[0])))
            part->result = CUDA_ERROR_INVALID_VALUE;
        if (part->result == CUDA_SUCCESS)
            taken[part->launching.stream->context->device] = true;
        result = result == CUDA_SUCCESS ? part->result : result;
    }
    return result;
}

static void submit(struct part *parts, unsigned int count, unsigned int flags) {
    for (unsigned int i = 0; i < count; i++) {
        parts[i].before = parts[i].launching.stream->tail;
        if (parts[i].before != NULL)
            sim_op_hold(parts[i].before);
    }
    for (unsigned int i = 0; i < count; i++) {
        struct launching *const launching = &parts[i].launching;
        struct op *const op = sim_stream_op(launching->stream, OP_KERNEL);
        for (unsigned int k = 0; k < count && (flags & NO_SYNC_BEFORE) == 0; k++)
            sim_op_wait_for(op, parts[k].before);
        sim_launch_fill(op, &launching->request, launching->stream, launching->stream->priority,
                        &launching->stream->usable);
        sim_op_hold(op);
        sim_stream_submit(launching->stream, op);
        parts[i].op = op;
    }
    for (unsigned int i = 0; i < count && (flags & NO_SYNC_AFTER) == 0; i++) {
        struct op *const op = sim_stream_op(parts[i].launching.stream, OP_NOTHING);
        for (unsigned int k = 0; k < count; k++)
            sim_op_wait_for(op, parts[k].op);
        sim_stream_submit(parts[i].launching.stream, op);
    }
    for (unsigned int i = 0; i < count; i++) {
        sim_op_release(parts[i].before);
        sim_op_release(parts[i].op);
    }
}

SIM_API CUresult cuLaunchCooperativeKernelMultiDevice(const CUDA_LAUNCH_PARAMS *list, unsigned int count,
                                                      unsigned int flags) {
    SIM_CALL_IN_CONTEXT(context);
    if (list == NULL || count < 1 || count > (unsigned int)sim_config.devices || flags > 3)
        return CUDA_ERROR_INVALID_VALUE;
    struct part *const parts = calloc(count, sizeof *parts);
    if (parts == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult result = prepare_all(parts, list, count);
    if (result == CUDA_SUCCESS)
        submit(parts, count, flags);
    for (unsigned int i = 0; i < count; i++)
        sim_launch_end(&parts[i].call, &parts[i].launching, result);
    free(parts);
    return result;
}
