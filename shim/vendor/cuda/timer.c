/* Events of ours, which time turns of a trial (common/pace.c). */
#include "cuda.h"

CUresult cuda_event_make(CUevent *event) {
    return driver.cuEventCreate ? driver.cuEventCreate(event, 0) : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuda_event_record(CUevent event, CUstream stream, enum default_stream null_stream) {
    CUresult (*const record)(CUevent, CUstream) =
        default_is_thread(null_stream) ? driver.cuEventRecord_ptsz : driver.cuEventRecord;
    return record ? record(event, stream) : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuda_event_elapsed(float *ms, CUevent from, CUevent to) {
    return driver.cuEventElapsedTime ? driver.cuEventElapsedTime(ms, from, to) : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuda_event_drop(CUevent event) {
    return driver.cuEventDestroy_v2 ? driver.cuEventDestroy_v2(event) : CUDA_ERROR_NOT_SUPPORTED;
}
