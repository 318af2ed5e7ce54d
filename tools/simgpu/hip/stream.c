/* Streams and events, where HIP's differ from the engine's. */
#include <stdatomic.h>
#include <string.h>

#include "hip.h"

hipError_t hip_hipStreamSynchronize(bool per_thread, hipStream_t stream) {
    hipError_t result = hip_ready();
    if (result == hipSuccess)
        result = per_thread ? cuStreamSynchronize_ptsz(stream) : cuStreamSynchronize(stream);
    return hip_waited(result);
}

hipError_t hip_hipStreamQuery(bool per_thread, hipStream_t stream) {
    hipError_t result = hip_ready();
    if (result == hipSuccess)
        result = per_thread ? cuStreamQuery_ptsz(stream) : cuStreamQuery(stream);
    return hip_waited(result);
}

hipError_t hip_hipStreamGetDevice(hipStream_t stream, hipDevice_t *device) {
    const hipError_t result = hip_ready();
    if (result == hipSuccess && device != NULL)
        *device = hip_device_of(stream);
    return device != NULL ? result : hipErrorInvalidValue;
}

int hip_hipGetStreamDeviceId(hipStream_t stream) {
    return hip_ready() == hipSuccess ? hip_device_of(stream) : -1;
}

/* Flags beside those of the engine say how caches are treated. */
hipError_t hip_hipEventCreateWithFlags(hipEvent_t *event, unsigned int flags) {
    enum { BLOCKING = 1, DISABLE_TIMING = 2, INTERPROCESS = 4 };
    static const unsigned int of_caches = 0x20000000 | 0x40000000 | 0x80000000;
    const hipError_t result = hip_ready();
    if ((flags & ~(of_caches | BLOCKING | DISABLE_TIMING | INTERPROCESS)) != 0)
        return hipErrorInvalidValue;
    return result != hipSuccess ? result : cuEventCreate(event, flags & ~of_caches);
}

hipError_t hip_hipEventQuery(hipEvent_t event) {
    hipError_t result = hip_ready();
    if (result == hipSuccess)
        result = cuEventQuery(event);
    return hip_waited(result);
}

hipError_t hip_hipEventSynchronize(hipEvent_t event) {
    hipError_t result = hip_ready();
    if (result == hipSuccess)
        result = cuEventSynchronize(event);
    return hip_waited(result);
}
