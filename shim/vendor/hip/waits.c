/* Calls that order streams and have another signature than on NVIDIA. */
#include "../../core/core.h"
#include "../../core/sync_model.h"
#include "../common/sync_calls.h"
#include "../common/windows.h"
#include "hip.h"

hipError_t hip_event_create_body(ENTRY, hipEvent_t *event) {
    REAL_OR_RETURN(hipEventCreate);
    struct overlap_sync_model *model = windows();
    hipError_t result = real(event);
    if (model && result == VENDOR_SUCCESS && event) /* forget an earlier event at this address */
        overlap_sync_event_gone(model, (uint64_t)(uintptr_t)*event);
    return result;
}

hipError_t hip_wait_value32_body(ENTRY, hipStream_t stream, void *address, uint32_t value, uint32_t flags,
                                 uint32_t mask) {
    REAL_OR_RETURN(hipStreamWaitValue32);
    return order_wait_untracked(hook, stream, real(stream, address, value, flags, mask));
}

hipError_t hip_wait_value64_body(ENTRY, hipStream_t stream, void *address, uint64_t value, uint32_t flags,
                                 uint64_t mask) {
    REAL_OR_RETURN(hipStreamWaitValue64);
    return order_wait_untracked(hook, stream, real(stream, address, value, flags, mask));
}

hipError_t hip_batch_body(ENTRY, hipStream_t stream, uint32_t count, hipStreamBatchMemOpParams *operations,
                          uint32_t flags) {
    REAL_OR_RETURN(hipStreamBatchMemOp);
    bool waits = false;
    for (uint32_t i = 0; operations && i < count && windows(); i++)
        waits |= operations[i].operation == hipStreamMemOpWaitValue32 ||
                 operations[i].operation == hipStreamMemOpWaitValue64;
    hipError_t result = real(stream, count, operations, flags);
    if (waits)
        return order_wait_untracked(hook, stream, result);
    if (result == VENDOR_SUCCESS) /* a query after a failure would replace the program's last error */
        copy_made(stream, hook_default(hook));
    return result;
}

hipError_t hip_wait_external_body(ENTRY, const void *semaphores, const void *params, uint32_t count,
                                  hipStream_t stream) {
    REAL_OR_RETURN(hipWaitExternalSemaphoresAsync);
    return order_wait_untracked(hook, stream, real(semaphores, params, count, stream));
}
