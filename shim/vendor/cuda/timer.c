/* Events of ours, which time turns of a trial (common/pace.h). */
#include "cuda.h"

CUevent cuda_timer_make(void) {
    CUevent event = NULL;
    const int mode = cuda_relax(); /* a stream may be capturing */
    const bool made = driver.cuEventCreate && driver.cuEventCreate(&event, 0) == CUDA_SUCCESS;
    cuda_restore(mode);
    return made ? event : NULL;
}

bool cuda_timer_record(CUevent event, CUstream stream, enum default_stream null_stream) {
    CUresult (*record)(CUevent, CUstream) =
        default_is_thread(null_stream) ? driver.cuEventRecord_ptsz : driver.cuEventRecord;
    return record && record(event, stream) == CUDA_SUCCESS;
}

enum timer_answer cuda_timer_read(CUevent from, CUevent to, uint64_t *nanoseconds) {
    float ms = 0;
    const int mode = cuda_relax();
    const CUresult result =
        driver.cuEventElapsedTime ? driver.cuEventElapsedTime(&ms, from, to) : CUDA_ERROR_NOT_SUPPORTED;
    cuda_restore(mode);
    if (result == VENDOR_NOT_READY)
        return TIMER_LATER;
    *nanoseconds = (uint64_t)((double)ms * 1e6);
    return result == CUDA_SUCCESS && ms >= 0 ? TIMER_READ : TIMER_FAILED;
}

void cuda_timer_drop(CUevent event) {
    const int mode = cuda_relax();
    if (driver.cuEventDestroy_v2)
        driver.cuEventDestroy_v2(event);
    cuda_restore(mode);
}
