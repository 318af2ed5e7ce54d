/* Events of ours, which time turns of a trial (common/pace.h). */
#include "hip.h"

hipEvent_t hip_timer_make(void) {
    hipEvent_t event = NULL;
    const int mode = hip_relax(); /* a stream may be capturing */
    const bool made = hip.hipEventCreate && HIP_ASK(hip.hipEventCreate(&event)) == VENDOR_SUCCESS;
    hip_restore(mode);
    return made ? event : NULL;
}

bool hip_timer_record(hipEvent_t event, hipStream_t stream, enum default_stream null_stream) {
    if (!stream && default_is_thread(null_stream))
        stream = (hipStream_t)STREAM_PER_THREAD;
    return hip.hipEventRecord && HIP_ASK(hip.hipEventRecord(event, stream)) == VENDOR_SUCCESS;
}

enum timer_answer hip_timer_read(hipEvent_t from, hipEvent_t to, uint64_t *nanoseconds) {
    float ms = 0;
    const int mode = hip_relax();
    const hipError_t result =
        hip.hipEventElapsedTime ? HIP_ASK(hip.hipEventElapsedTime(&ms, from, to)) : VENDOR_NOT_SUPPORTED;
    hip_restore(mode);
    if (result == VENDOR_NOT_READY)
        return TIMER_LATER;
    *nanoseconds = (uint64_t)((double)ms * 1e6);
    return result == VENDOR_SUCCESS && ms >= 0 ? TIMER_READ : TIMER_FAILED;
}

void hip_timer_drop(hipEvent_t event) {
    const int mode = hip_relax();
    if (hip.hipEventDestroy)
        (void)HIP_ASK(hip.hipEventDestroy(event));
    hip_restore(mode);
}
