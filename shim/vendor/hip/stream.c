/* Creation of HIP's streams without a priority. The rest is in ../common/stream_calls.c. */
#include "../../core/core.h"
#include "../common/stream_calls.h"
#include "hip.h"

hipError_t hip_stream_create_body(ENTRY, hipStream_t *stream) {
    REAL_OR_RETURN(hipStreamCreate);
    bool raised;
    const hipError_t result =
        stream_create_at(VENDOR_HIP, site, stream, 0, 0, real_export(HOOK_hipStreamCreateWithPriority), &raised);
    return raised ? result : stream_created(VENDOR_HIP, site, stream, 0, 0, real(stream));
}

hipError_t hip_stream_flags_body(ENTRY, hipStream_t *stream, uint32_t flags) {
    REAL_OR_RETURN(hipStreamCreateWithFlags);
    bool raised;
    const hipError_t result =
        stream_create_at(VENDOR_HIP, site, stream, flags, 0, real_export(HOOK_hipStreamCreateWithPriority), &raised);
    return raised ? result : stream_created(VENDOR_HIP, site, stream, flags, 0, real(stream, flags));
}
