/* Calls that order streams and exist on NVIDIA only: waits for memory and for other processes; whole contexts. */
#include "../../core/core.h"
#include "../../core/sync_model.h"
#include "../common/sync_calls.h"
#include "../common/windows.h"
#include "cuda.h"

CUresult stream_wait_value32_body(ENTRY, CUstream stream, uint64_t address, uint32_t value, uint32_t flags) {
    REAL_OR_RETURN(cuStreamWaitValue32);
    return order_wait_untracked(hook, stream, real(stream, address, value, flags));
}

CUresult stream_wait_value64_body(ENTRY, CUstream stream, uint64_t address, uint64_t value, uint32_t flags) {
    REAL_OR_RETURN(cuStreamWaitValue64);
    return order_wait_untracked(hook, stream, real(stream, address, value, flags));
}

CUresult stream_batch_body(ENTRY, CUstream stream, uint32_t count, CUstreamBatchMemOpParams *operations,
                           uint32_t flags) {
    REAL_OR_RETURN(cuStreamBatchMemOp);
    bool waits = false;
    for (uint32_t i = 0; operations && i < count && windows(); i++)
        waits |= operations[i].operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
                 operations[i].operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
    CUresult result = real(stream, count, operations, flags);
    if (waits)
        return order_wait_untracked(hook, stream, result);
    copy_made(stream, hook_default(hook));
    return result;
}

CUresult stream_wait_external_body(ENTRY, const void *semaphores, const void *params, uint32_t count, CUstream stream) {
    REAL_OR_RETURN(cuWaitExternalSemaphoresAsync);
    return order_wait_untracked(hook, stream, real(semaphores, params, count, stream));
}

CUresult context_synchronize_v2_body(ENTRY, CUcontext context) {
    REAL_OR_RETURN(cuCtxSynchronize_v2);
    struct overlap_sync_model *model = windows();
    struct overlap_completion completion;
    if (!model)
        return real(context);
    overlap_sync_completion_of_context(model, context ? (uint64_t)(uintptr_t)context : window_context(VENDOR_CUDA),
                                       &completion);
    CUresult result = real(context);
    if (result == CUDA_SUCCESS)
        window_host_waited(model, &completion);
    return result;
}

/* An event recorded for a whole context, and a whole context that waits for an event: treat both as ordering
 * everything. */
static CUresult recorded_by_context(CUevent event, CUresult result) {
    if (result == CUDA_SUCCESS)
        order_event_unknown(event);
    return result;
}

static CUresult context_waits(CUevent event, CUresult result) {
    struct overlap_sync_model *model = windows();
    if (model && result == CUDA_SUCCESS)
        overlap_sync_waits(model, NULL, (uint64_t)(uintptr_t)event);
    return result;
}

CUresult context_record_body(ENTRY, CUcontext context, CUevent event) {
    REAL_OR_RETURN(cuCtxRecordEvent);
    return recorded_by_context(event, real(context, event));
}

CUresult context_wait_body(ENTRY, CUcontext context, CUevent event) {
    REAL_OR_RETURN(cuCtxWaitEvent);
    return context_waits(event, real(context, event));
}

CUresult green_record_body(ENTRY, CUgreenCtx context, CUevent event) {
    REAL_OR_RETURN(cuGreenCtxRecordEvent);
    return recorded_by_context(event, real(context, event));
}

CUresult green_wait_body(ENTRY, CUgreenCtx context, CUevent event) {
    REAL_OR_RETURN(cuGreenCtxWaitEvent);
    return context_waits(event, real(context, event));
}
