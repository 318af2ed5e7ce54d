/* Streams and events, where HIP's differ from the engine's. */
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
