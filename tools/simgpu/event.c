/* Events: marks in a stream, with the virtual time at which they are reached. */
#include <stdlib.h>

#include "sim.h"

SIM_API CUresult cuEventCreate(CUevent *out, unsigned int flags) {
    SIM_CALL_IN_CONTEXT(context);
    if (out == NULL || flags > 7 || (flags & (EVENT_INTERPROCESS | EVENT_DISABLE_TIMING)) == EVENT_INTERPROCESS)
        return CUDA_ERROR_INVALID_VALUE;
    return sim_event_new(context, flags, out);
}

CUresult sim_event_new(struct context *context, unsigned int flags, CUevent *out) {
    struct event *const event = sim_new(1, sizeof *event);
    event->handle = sim_handle_new(KIND_EVENT, event);
    event->context = context;
    event->flags = flags;
    event->next = context->events;
    context->events = event;
    *out = event->handle;
    return CUDA_SUCCESS;
}

void sim_event_free(struct event *event) {
    SIM_UNLINK(event->context->events, event);
    sim_handle_free(event->handle);
    sim_op_release(event->record);
    free(event->heads);
    free(event);
}

SIM_API CUresult cuEventDestroy_v2(CUevent handle) {
    SIM_CALL();
    struct event *const event = sim_handle_get(handle, KIND_EVENT);
    if (event == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    sim_event_free(event);
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuEventDestroy, cuEventDestroy_v2, (CUevent handle), handle)

static CUresult record_with_flags(CUevent event_handle, CUstream handle, unsigned int flags, bool per_thread) {
    SIM_CALL_WITH_STREAM(stream);
    struct event *const event = sim_handle_get(event_handle, KIND_EVENT);
    if (event == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (flags > 1)
        return CUDA_ERROR_INVALID_VALUE;
    bool capturing;
    const CUresult result = sim_capture_check(stream, &capturing);
    if (result != CUDA_SUCCESS)
        return result;
    if (event->context != stream->context)
        return CUDA_ERROR_INVALID_HANDLE;
    if (flags == EVENT_EXTERNAL && !capturing)
        return CUDA_ERROR_INVALID_VALUE;
    if (capturing) {
        if (flags == 0)
            return sim_capture_record(stream, event);
        sim_capture_node(stream, NODE_RECORD)->event = event_handle; /* an external event: a node of the graph */
        return CUDA_SUCCESS;
    }
    event->capture_id = 0;
    struct op *const op = sim_stream_op(stream, OP_NOTHING);
    sim_op_hold(op);
    sim_op_release(event->record);
    event->record = op;
    sim_stream_submit(stream, op);
    return CUDA_SUCCESS;
}
SIM_BOTH(cuEventRecordWithFlags, record_with_flags, (CUevent event, CUstream handle, unsigned int flags), event, handle,
         flags)

static CUresult record(CUevent event, CUstream handle, bool per_thread) {
    return record_with_flags(event, handle, 0, per_thread);
}
SIM_BOTH(cuEventRecord, record, (CUevent event, CUstream handle), event, handle)

static CUresult check(const struct event *event) {
    if (event == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (sim_capture_holds(event))
        return CUDA_ERROR_CAPTURED_EVENT;
    return sim_capture_forbids();
}

SIM_API CUresult cuEventQuery(CUevent handle) {
    SIM_NAMED(__func__);
    SIM_CALL();
    const struct event *const event = sim_handle_get(handle, KIND_EVENT);
    const CUresult result = check(event);
    if (result != CUDA_SUCCESS)
        return result;
    sim_engine_run_to(sim_host_us);
    sim_trace_wait("Event Sync", event->context->device, NULL, event->record);
    return event->record == NULL || event->record->done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

SIM_API CUresult cuEventSynchronize(CUevent handle) {
    SIM_NAMED(__func__);
    SIM_CALL();
    const struct event *const event = sim_handle_get(handle, KIND_EVENT);
    const CUresult result = check(event);
    if (result != CUDA_SUCCESS)
        return result;
    const bool pending = event->record != NULL && !event->record->done;
    const CUresult waited = pending ? sim_engine_run_until_done(event->record) : CUDA_SUCCESS;
    sim_trace_wait("Event Sync", event->context->device, NULL, event->record);
    sim_trace_flush();
    return waited;
}

static CUresult elapsed(float *milliseconds, CUevent from_handle, CUevent to_handle) {
    SIM_CALL();
    const struct event *const from = sim_handle_get(from_handle, KIND_EVENT);
    const struct event *const to = sim_handle_get(to_handle, KIND_EVENT);
    if (milliseconds == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (from == NULL || to == NULL || from->record == NULL || to->record == NULL ||
        ((from->flags | to->flags) & EVENT_DISABLE_TIMING) != 0)
        return CUDA_ERROR_INVALID_HANDLE;
    sim_engine_run_to(sim_host_us);
    if (!from->record->done || !to->record->done)
        return CUDA_ERROR_NOT_READY;
    *milliseconds = (float)((to->record->done_us - from->record->done_us) / 1000);
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuEventElapsedTime, elapsed, (float *milliseconds, CUevent from, CUevent to), milliseconds, from, to)
SIM_ENTRY(cuEventElapsedTime_v2, elapsed, (float *milliseconds, CUevent from, CUevent to), milliseconds, from, to)
