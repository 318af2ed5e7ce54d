/* Events of ours, which time turns of a trial (common/pace.c). */
#include "hip.h"

hipError_t hip_event_make(hipEvent_t *event) {
    return hip.hipEventCreate ? hip.hipEventCreate(event) : VENDOR_NOT_SUPPORTED;
}

hipError_t hip_event_record(hipEvent_t event, hipStream_t stream, enum default_stream null_stream) {
    if (!stream && default_is_thread(null_stream))
        stream = (hipStream_t)STREAM_PER_THREAD;
    return hip.hipEventRecord ? hip.hipEventRecord(event, stream) : VENDOR_NOT_SUPPORTED;
}

hipError_t hip_event_elapsed(float *ms, hipEvent_t from, hipEvent_t to) {
    return hip.hipEventElapsedTime ? hip.hipEventElapsedTime(ms, from, to) : VENDOR_NOT_SUPPORTED;
}

hipError_t hip_event_drop(hipEvent_t event) {
    return hip.hipEventDestroy ? hip.hipEventDestroy(event) : VENDOR_NOT_SUPPORTED;
}
