/* The entry points of streams. */
#include <stdlib.h>

#include "sim.h"

enum { ATTRIBUTE_ACCESS_POLICY = 1, ATTRIBUTE_SYNC_POLICY = 3, ATTRIBUTE_PRIORITY = 8 };

static CUresult create(CUstream *out, unsigned int flags, int priority) {
    SIM_CALL_IN_CONTEXT(context);
    if (out == NULL || flags > STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    const struct stream *const stream = sim_stream_here(context, flags, priority);
    if (stream == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *out = stream->handle;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuStreamCreate(CUstream *out, unsigned int flags) {
    return create(out, flags, NORMAL_PRIORITY);
}

SIM_API CUresult cuStreamCreateWithPriority(CUstream *out, unsigned int flags, int priority) {
    return create(out, flags, priority);
}

static CUresult destroy(CUstream handle) {
    SIM_CALL();
    struct stream *const stream = sim_handle_get(handle, KIND_STREAM);
    if (stream == NULL || stream->legacy || stream->of_green || stream->thread != 0)
        return CUDA_ERROR_INVALID_HANDLE;
    sim_stream_free(stream);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuStreamDestroy(CUstream handle) {
    return destroy(handle);
}

SIM_API CUresult cuStreamDestroy_v2(CUstream handle) {
    return destroy(handle);
}

static CUresult query(CUstream handle, bool per_thread) {
    SIM_CALL_WITH_STREAM(stream);
    const CUresult forbidden = sim_capture_stream_forbids(stream);
    if (forbidden != CUDA_SUCCESS)
        return forbidden;
    sim_engine_run_to(sim_host_us);
    return sim_stream_idle(stream) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
SIM_BOTH(cuStreamQuery, query, (CUstream handle), handle)

static CUresult synchronize(CUstream handle, bool per_thread) {
    SIM_CALL_WITH_STREAM(stream);
    const CUresult forbidden = sim_capture_stream_forbids(stream);
    if (forbidden != CUDA_SUCCESS)
        return forbidden;
    const CUresult result = sim_stream_drain(stream);
    sim_log_flush();
    return result;
}
SIM_BOTH(cuStreamSynchronize, synchronize, (CUstream handle), handle)

static CUresult get_priority(CUstream handle, int *priority, bool per_thread) {
    SIM_CALL_WITH_STREAM(stream);
    if (priority == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = sim_capture_check_legacy(stream); /* even this question (measured: 580.159) */
    if (result == CUDA_SUCCESS)
        *priority = stream->priority;
    return result;
}
SIM_BOTH(cuStreamGetPriority, get_priority, (CUstream handle, int *priority), handle, priority)

static CUresult get_flags(CUstream handle, unsigned int *flags, bool per_thread) {
    SIM_CALL_WITH_STREAM(stream);
    if (flags == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = stream->flags;
    return CUDA_SUCCESS;
}
SIM_BOTH(cuStreamGetFlags, get_flags, (CUstream handle, unsigned int *flags), handle, flags)

static CUresult get_id(CUstream handle, unsigned long long *id, bool per_thread) {
    SIM_CALL_WITH_STREAM(stream);
    if (id == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *id = stream->id;
    return CUDA_SUCCESS;
}
SIM_BOTH(cuStreamGetId, get_id, (CUstream handle, unsigned long long *id), handle, id)

static CUresult get_device(CUstream handle, CUdevice *device, bool per_thread) {
    SIM_CALL_WITH_STREAM(stream);
    if (device == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *device = stream->context->device;
    return CUDA_SUCCESS;
}
SIM_BOTH(cuStreamGetDevice, get_device, (CUstream handle, CUdevice *device), handle, device)

static CUresult get_context(CUstream handle, CUcontext *out, bool per_thread) {
    SIM_CALL_WITH_STREAM(stream);
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = sim_handle_get(stream->green, KIND_GREEN) != NULL ? stream->green : stream->context->handle;
    return CUDA_SUCCESS;
}
SIM_BOTH(cuStreamGetCtx, get_context, (CUstream handle, CUcontext *out), handle, out)

/* One of the two: a stream of a green context tells no other one. */
static CUresult get_context_v2(CUstream handle, CUcontext *out, CUcontext *green, bool per_thread) {
    SIM_CALL_WITH_STREAM(stream);
    if (out == NULL || green == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *green = sim_handle_get(stream->green, KIND_GREEN) != NULL ? stream->green : NULL;
    *out = *green == NULL ? stream->context->handle : NULL;
    return CUDA_SUCCESS;
}
SIM_BOTH(cuStreamGetCtx_v2, get_context_v2, (CUstream handle, CUcontext *out, CUcontext *green), handle, out, green)

static CUresult get_attribute(CUstream handle, int id, CUlaunchAttributeValue *value, bool per_thread) {
    SIM_CALL_WITH_STREAM(stream);
    if (value == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    switch (id) {
    case ATTRIBUTE_PRIORITY:
        if (sim_config.driver_version < FIRST_VERSION_WITH_PRIORITY)
            return CUDA_ERROR_INVALID_VALUE;
        value->integer = stream->priority;
        return CUDA_SUCCESS;
    case ATTRIBUTE_SYNC_POLICY:
        value->integer = stream->sync_policy;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}
SIM_BOTH(cuStreamGetAttribute, get_attribute, (CUstream handle, int id, CUlaunchAttributeValue *value), handle, id,
         value)

static CUresult set_attribute(CUstream handle, int id, const CUlaunchAttributeValue *value, bool per_thread) {
    SIM_CALL_WITH_STREAM(stream);
    if (value == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    switch (id) {
    case ATTRIBUTE_PRIORITY:
        if (sim_config.driver_version < FIRST_VERSION_WITH_PRIORITY)
            return CUDA_ERROR_INVALID_VALUE;
        stream->priority = sim_clamp_priority(value->integer);
        return CUDA_SUCCESS;
    case ATTRIBUTE_SYNC_POLICY:
        stream->sync_policy = value->integer;
        return CUDA_SUCCESS;
    case ATTRIBUTE_ACCESS_POLICY:
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}
SIM_BOTH(cuStreamSetAttribute, set_attribute, (CUstream handle, int id, const CUlaunchAttributeValue *value), handle,
         id, value)

static CUresult copy_attributes(CUstream to, CUstream handle, bool per_thread) {
    SIM_CALL_WITH_STREAM(stream);
    struct stream *target;
    const CUresult result = sim_stream_of(to, per_thread, sim_context, &target);
    if (result != CUDA_SUCCESS)
        return result;
    target->priority = stream->priority;
    target->sync_policy = stream->sync_policy;
    return CUDA_SUCCESS;
}
SIM_BOTH(cuStreamCopyAttributes, copy_attributes, (CUstream to, CUstream from), to, from)

/* The signal of another stream takes its time, if a cost was given for that. */
static void wait_for_record(struct op *op, struct op *record, const struct stream *stream) {
    if (sim_event_us() <= 0 || record->done || record->stream == stream) {
        sim_op_wait_for(op, record);
        return;
    }
    struct op *const signal = sim_op_new(OP_DELAY, stream->context->device);
    signal->delay_us = sim_event_us();
    sim_op_wait_for(signal, record);
    sim_op_wait_for(op, signal);
    sim_op_submit(signal);
}

static CUresult wait_event(CUstream handle, CUevent event_handle, unsigned int flags, bool per_thread) {
    SIM_CALL_WITH_STREAM(stream);
    struct event *const event = sim_handle_get(event_handle, KIND_EVENT);
    if (event == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (flags > 1)
        return CUDA_ERROR_INVALID_VALUE;
    bool capturing;
    const bool external = flags == EVENT_EXTERNAL;
    if (!external && sim_capture_holds(event))
        return sim_capture_wait(stream, event);
    const CUresult result = sim_capture_check(stream, &capturing);
    if (result != CUDA_SUCCESS)
        return result;
    if (external) {
        struct node *const node = capturing ? sim_capture_node(stream, NODE_WAIT) : NULL;
        if (node != NULL)
            node->event = event_handle;
        return node != NULL ? CUDA_SUCCESS : capturing ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
    }
    if (event->record == NULL)
        return CUDA_SUCCESS; /* never recorded: nothing to wait for */
    if (capturing) {
        sim_capture_invalidate(stream->capture);
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    struct op *const op = sim_stream_op(stream, OP_NOTHING);
    wait_for_record(op, event->record, stream);
    sim_stream_submit(stream, op);
    return CUDA_SUCCESS;
}
SIM_BOTH(cuStreamWaitEvent, wait_event, (CUstream handle, CUevent event, unsigned int flags), handle, event, flags)

static CUresult attach_memory(CUstream handle, CUdeviceptr address, size_t bytes, unsigned int flags, bool per_thread) {
    SIM_CALL_WITH_STREAM(stream);
    (void)bytes;
    return address != 0 && flags <= 4 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
SIM_BOTH(cuStreamAttachMemAsync, attach_memory,
         (CUstream handle, CUdeviceptr address, size_t bytes, unsigned int flags), handle, address, bytes, flags)

/* Puts a host function in the stream. True: the caller runs it now, without the lock (copies are done at once, too, so
 * the order of effects is the order of calls). */
static CUresult host_function(CUstream handle, CUhostFn function, void *argument, bool per_thread, bool *run) {
    SIM_CALL_WITH_STREAM(stream);
    bool capturing;
    const CUresult result = sim_capture_check(stream, &capturing);
    if (result != CUDA_SUCCESS)
        return result;
    if (capturing) {
        if (function == NULL) {
            sim_capture_invalidate(stream->capture);
            return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
        struct node *const node = sim_capture_node(stream, NODE_HOST);
        if (node == NULL)
            return CUDA_ERROR_OUT_OF_MEMORY;
        node->function = function;
        node->argument = argument;
        return CUDA_SUCCESS;
    }
    struct op *const op = sim_stream_op(stream, OP_DELAY);
    op->delay_us = HOST_FUNCTION_US;
    op->unit = UNIT_HOST;
    sim_stream_submit(stream, op);
    *run = true;
    return CUDA_SUCCESS;
}

static CUresult launch_host(CUstream handle, CUhostFn function, void *argument, bool per_thread) {
    bool run = false;
    if (function == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = host_function(handle, function, argument, per_thread, &run);
    if (run)
        function(argument);
    return result;
}
SIM_BOTH(cuLaunchHostFunc, launch_host, (CUstream handle, CUhostFn function, void *argument), handle, function,
         argument)

static CUresult add_callback(CUstream handle, CUstreamCallback callback, void *argument, unsigned int flags,
                             bool per_thread) {
    bool run = false;
    if (callback == NULL || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = host_function(handle, NULL, argument, per_thread, &run);
    if (run)
        callback(handle, CUDA_SUCCESS, argument);
    return result;
}
SIM_BOTH(cuStreamAddCallback, add_callback,
         (CUstream handle, CUstreamCallback callback, void *argument, unsigned int flags), handle, callback, argument,
         flags)
