/* Calls that order streams, or tell the host what is over. The driver is asked first, and what it has refused has not
 * happened; only an event is marked before, so that nobody takes what it says while it is being recorded. */
#include "windows.h"

static uint64_t key_of_event(CUevent event) {
    return (uint64_t)(uintptr_t)event;
}

/* ---- Events ---- */

CUresult event_create_body(enum overlap_way way, enum hook hook, uintptr_t site, CUevent *event, uint32_t flags) {
    REAL_OR_RETURN(cuEventCreate);
    struct overlap_order *order = windows();
    CUresult result = real(event, flags);
    if (order && result == CUDA_SUCCESS && event)
        overlap_order_event_gone(order, key_of_event(*event)); /* one that had its address, and went with its context */
    return result;
}

CUresult event_destroy_body(enum overlap_way way, enum hook hook, uintptr_t site, CUevent event) {
    REAL_OR_RETURN(cuEventDestroy);
    struct overlap_order *order = windows();
    if (order)
        overlap_order_event_gone(order, key_of_event(event)); /* before its address is another's */
    return real(event);
}

CUresult event_record_body(enum overlap_way way, enum hook hook, uintptr_t site, CUevent event, CUstream stream) {
    REAL_OR_RETURN(cuEventRecord);
    struct overlap_order *order = windows();
    if (!order)
        return real(event, stream);
    struct overlap_stream *its = window_stream(order, stream, hook_is_per_thread(hook));
    struct overlap_event *recording = overlap_order_recording(order, key_of_event(event), its);
    CUresult result = real(event, stream);
    overlap_order_recorded(order, recording, its, result == CUDA_SUCCESS);
    window_after(order);
    return result;
}

CUresult event_record_flags_body(enum overlap_way way, enum hook hook, uintptr_t site, CUevent event, CUstream stream,
                                 uint32_t flags) {
    REAL_OR_RETURN(cuEventRecordWithFlags);
    struct overlap_order *order = windows();
    if (!order)
        return real(event, stream, flags);
    struct overlap_stream *its = window_stream(order, stream, hook_is_per_thread(hook));
    if (flags & CU_EVENT_RECORD_EXTERNAL && overlap_stream_here(its) != its) { /* a node of the graph records it */
        CUresult result = real(event, stream, flags);
        if (result == CUDA_SUCCESS)
            overlap_order_event_unknown(order, key_of_event(event));
        return result;
    }
    struct overlap_event *recording = overlap_order_recording(order, key_of_event(event), its);
    CUresult result = real(event, stream, flags);
    overlap_order_recorded(order, recording, its, result == CUDA_SUCCESS);
    window_after(order);
    return result;
}

static CUresult saw_event(struct overlap_order *order, CUevent event, CUresult (*real)(CUevent event)) {
    struct overlap_seen seen;
    overlap_order_see_event(order, key_of_event(event), &seen);
    CUresult result = real(event);
    if (result == CUDA_SUCCESS)
        window_saw(order, &seen);
    return result;
}

CUresult event_query_body(enum overlap_way way, enum hook hook, uintptr_t site, CUevent event) {
    REAL_OR_RETURN(cuEventQuery);
    struct overlap_order *order = windows();
    return order ? saw_event(order, event, real) : real(event);
}

CUresult event_synchronize_body(enum overlap_way way, enum hook hook, uintptr_t site, CUevent event) {
    REAL_OR_RETURN(cuEventSynchronize);
    struct overlap_order *order = windows();
    return order ? saw_event(order, event, real) : real(event);
}

CUresult event_elapsed_body(enum overlap_way way, enum hook hook, uintptr_t site, float *ms, CUevent from, CUevent to) {
    REAL_OR_RETURN(cuEventElapsedTime);
    struct overlap_order *order = windows();
    struct overlap_seen seen[2];
    if (!order)
        return real(ms, from, to);
    overlap_order_see_event(order, key_of_event(from), &seen[0]);
    overlap_order_see_event(order, key_of_event(to), &seen[1]);
    CUresult result = real(ms, from, to);
    for (int i = 0; result == CUDA_SUCCESS && i < 2; i++)
        window_saw(order, &seen[i]);
    return result;
}

CUresult event_export_body(enum overlap_way way, enum hook hook, uintptr_t site, void *handle, CUevent event) {
    REAL_OR_RETURN(cuIpcGetEventHandle);
    struct overlap_order *order = windows();
    if (order)
        overlap_order_event_exported(order, key_of_event(event));
    return real(handle, event);
}

CUresult event_import_body(enum overlap_way way, enum hook hook, uintptr_t site, CUevent *event,
                           CUipcEventHandle handle) {
    REAL_OR_RETURN(cuIpcOpenEventHandle);
    struct overlap_order *order = windows();
    CUresult result = real(event, handle);
    if (order && result == CUDA_SUCCESS && event) {
        overlap_order_event_gone(order, key_of_event(*event));
        overlap_order_event_imported(order, key_of_event(*event));
    }
    return result;
}

void order_event_of_launch(CUevent event) {
    struct overlap_order *order = windows();
    if (order)
        overlap_order_event_unknown(order, key_of_event(event));
}

/* ---- Streams ---- */

CUresult stream_wait_body(enum overlap_way way, enum hook hook, uintptr_t site, CUstream stream, CUevent event,
                          uint32_t flags) {
    REAL_OR_RETURN(cuStreamWaitEvent);
    struct overlap_order *order = windows();
    CUresult result = real(stream, event, flags);
    struct overlap_stream *its =
        order && result == CUDA_SUCCESS ? window_stream(order, stream, hook_is_per_thread(hook)) : NULL;
    if (its) {
        if (overlap_order_waits(order, its, key_of_event(event)))
            priority_unhurried();
        window_after(order);
    }
    return result;
}

static CUresult saw_stream(struct overlap_order *order, CUstream stream, bool per_thread,
                           CUresult (*real)(CUstream stream)) {
    struct overlap_seen seen;
    overlap_order_see_stream(order, window_stream(order, stream, per_thread), &seen);
    CUresult result = real(stream);
    if (result == CUDA_SUCCESS)
        window_saw(order, &seen);
    return result;
}

CUresult stream_synchronize_body(enum overlap_way way, enum hook hook, uintptr_t site, CUstream stream) {
    REAL_OR_RETURN(cuStreamSynchronize);
    struct overlap_order *order = windows();
    return order ? saw_stream(order, stream, hook_is_per_thread(hook), real) : real(stream);
}

CUresult stream_query_body(enum overlap_way way, enum hook hook, uintptr_t site, CUstream stream) {
    REAL_OR_RETURN(cuStreamQuery);
    struct overlap_order *order = windows();
    return order ? saw_stream(order, stream, hook_is_per_thread(hook), real) : real(stream);
}

/* The stream waits for something that nobody here can see. */
static CUresult waits_unseen(enum hook hook, CUstream stream, CUresult result) {
    struct overlap_order *order = windows();
    if (order && result == CUDA_SUCCESS) {
        struct overlap_stream *its = window_stream(order, stream, hook_is_per_thread(hook));
        if (overlap_stream_here(its) != its)
            __atomic_store_n(&exec_may_wait, 1, __ATOMIC_RELAXED);
        overlap_order_unknown(order, its);
        window_after(order);
    }
    return result;
}

CUresult stream_wait_value32_body(enum overlap_way way, enum hook hook, uintptr_t site, CUstream stream,
                                  uint64_t address, uint32_t value, uint32_t flags) {
    REAL_OR_RETURN(cuStreamWaitValue32);
    return waits_unseen(hook, stream, real(stream, address, value, flags));
}

CUresult stream_wait_value64_body(enum overlap_way way, enum hook hook, uintptr_t site, CUstream stream,
                                  uint64_t address, uint64_t value, uint32_t flags) {
    REAL_OR_RETURN(cuStreamWaitValue64);
    return waits_unseen(hook, stream, real(stream, address, value, flags));
}

CUresult stream_batch_body(enum overlap_way way, enum hook hook, uintptr_t site, CUstream stream, uint32_t count,
                           CUstreamBatchMemOpParams *operations, uint32_t flags) {
    REAL_OR_RETURN(cuStreamBatchMemOp);
    bool waits = false;
    for (uint32_t i = 0; operations && i < count && windows(); i++)
        waits |= operations[i].operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
                 operations[i].operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
    CUresult result = real(stream, count, operations, flags);
    if (waits)
        return waits_unseen(hook, stream, result);
    copy_made(stream, hook_is_per_thread(hook));
    return result;
}

CUresult stream_wait_external_body(enum overlap_way way, enum hook hook, uintptr_t site, const void *semaphores,
                                   const void *params, uint32_t count, CUstream stream) {
    REAL_OR_RETURN(cuWaitExternalSemaphoresAsync);
    return waits_unseen(hook, stream, real(semaphores, params, count, stream));
}

/* ---- Contexts ---- */

CUresult context_synchronize_body(enum overlap_way way, enum hook hook, uintptr_t site) {
    REAL_OR_RETURN(cuCtxSynchronize);
    struct overlap_order *order = windows();
    struct overlap_seen seen;
    if (!order)
        return real();
    overlap_order_see_context(order, window_context(), &seen);
    CUresult result = real();
    if (result == CUDA_SUCCESS)
        window_saw(order, &seen);
    return result;
}

CUresult context_synchronize_v2_body(enum overlap_way way, enum hook hook, uintptr_t site, CUcontext context) {
    REAL_OR_RETURN(cuCtxSynchronize_v2);
    struct overlap_order *order = windows();
    struct overlap_seen seen;
    if (!order)
        return real(context);
    overlap_order_see_context(order, context ? (uint64_t)(uintptr_t)context : window_context(), &seen);
    CUresult result = real(context);
    if (result == CUDA_SUCCESS)
        window_saw(order, &seen);
    return result;
}

/* An event for all of a context; and all of a context waits for one: then everything does. */
static CUresult recorded_for_all(CUevent event, CUresult result) {
    struct overlap_order *order = windows();
    if (order && result == CUDA_SUCCESS)
        overlap_order_event_unknown(order, key_of_event(event));
    return result;
}

static CUresult all_wait(CUevent event, CUresult result) {
    struct overlap_order *order = windows();
    if (order && result == CUDA_SUCCESS)
        overlap_order_waits(order, NULL, key_of_event(event));
    return result;
}

CUresult context_record_body(enum overlap_way way, enum hook hook, uintptr_t site, CUcontext context, CUevent event) {
    REAL_OR_RETURN(cuCtxRecordEvent);
    return recorded_for_all(event, real(context, event));
}

CUresult context_wait_body(enum overlap_way way, enum hook hook, uintptr_t site, CUcontext context, CUevent event) {
    REAL_OR_RETURN(cuCtxWaitEvent);
    return all_wait(event, real(context, event));
}

CUresult green_record_body(enum overlap_way way, enum hook hook, uintptr_t site, CUgreenCtx context, CUevent event) {
    REAL_OR_RETURN(cuGreenCtxRecordEvent);
    return recorded_for_all(event, real(context, event));
}

CUresult green_wait_body(enum overlap_way way, enum hook hook, uintptr_t site, CUgreenCtx context, CUevent event) {
    REAL_OR_RETURN(cuGreenCtxWaitEvent);
    return all_wait(event, real(context, event));
}
