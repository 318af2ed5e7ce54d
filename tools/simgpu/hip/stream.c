/* Streams and events, where HIP's differ from the engine's. */
#include <stdatomic.h>
#include <string.h>

#include "hip.h"

hipError_t hip_hipStreamSynchronize(bool per_thread, hipStream_t stream) {
    hipError_t result = hip_ready();
    if (result == hipSuccess)
        result = per_thread ? cuStreamSynchronize_ptsz(stream) : cuStreamSynchronize(stream);
    return result != hipSuccess ? result : hip_ended();
}

hipError_t hip_hipStreamQuery(bool per_thread, hipStream_t stream) {
    hipError_t result = hip_ready();
    if (result == hipSuccess)
        result = per_thread ? cuStreamQuery_ptsz(stream) : cuStreamQuery(stream);
    return result != hipSuccess ? result : hip_ended();
}

int hip_hipGetStreamDeviceId(hipStream_t stream) {
    return hip_ready() == hipSuccess ? hip_device_of(stream) : -1;
}

/* Bits of compute units. A stream with some of them has a queue of its own, of normal priority. */
static hipError_t create_masked(hipStream_t *out, uint32_t words, const uint32_t *mask) {
    SIM_CALL_IN_CONTEXT(context);
    struct sm_set usable = {0};
    const int units = sim_gpu(context->device)->multiprocessors;
    for (int i = 0; i < units && (uint32_t)i / 32 < words; i++)
        if ((mask[i / 32] >> i % 32 & 1) != 0)
            sim_sm_add(&usable, i);
    if (sim_sm_count(&usable) == 0)
        return hipErrorInvalidValue;
    struct stream *const stream = sim_stream_new(context, 0, NORMAL_PRIORITY);
    if (stream == NULL)
        return hipErrorOutOfMemory;
    stream->usable = usable;
    *out = stream->handle;
    return hipSuccess;
}

hipError_t hip_hipExtStreamCreateWithCUMask(hipStream_t *stream, uint32_t words, const uint32_t *mask) {
    const hipError_t result = hip_ready();
    if (stream == NULL || words == 0 || mask == NULL)
        return hipErrorInvalidValue;
    return result != hipSuccess ? result : create_masked(stream, words, mask);
}

static hipError_t get_mask(hipStream_t handle, uint32_t words, uint32_t *mask) {
    SIM_CALL_IN_CONTEXT(context);
    struct stream *stream;
    const CUresult found = sim_stream_of(handle, false, context, &stream);
    if (found != CUDA_SUCCESS)
        return found;
    const int units = sim_gpu(stream->context->device)->multiprocessors;
    if (words < (uint32_t)(units + 31) / 32)
        return hipErrorInvalidValue;
    memset(mask, 0, words * sizeof *mask);
    for (int i = 0; i < units; i++)
        if (sim_sm_has(&stream->usable, i))
            mask[i / 32] |= UINT32_C(1) << i % 32;
    return hipSuccess;
}

hipError_t hip_hipExtStreamGetCUMask(hipStream_t stream, uint32_t words, uint32_t *mask) {
    const hipError_t result = hip_ready();
    if (mask == NULL)
        return hipErrorInvalidValue;
    return result != hipSuccess ? result : get_mask(stream, words, mask);
}

/* A mask of bits that are compared is a part of these calls that the engine does not have. */
static bool is_whole(uint64_t mask, uint64_t all) {
    static atomic_flag said = ATOMIC_FLAG_INIT;
    if (mask != all && !atomic_flag_test_and_set(&said))
        sim_say("hipStreamWaitValue with a mask is not simulated; it answers hipErrorNotSupported");
    return mask == all;
}

hipError_t hip_hipStreamWaitValue32(hipStream_t stream, void *address, uint32_t value, unsigned int flags,
                                    uint32_t mask) {
    const hipError_t result = hip_ready();
    if (result != hipSuccess)
        return result;
    return is_whole(mask, UINT32_MAX) ? cuStreamWaitValue32_v2(stream, (CUdeviceptr)address, value, flags)
                                      : hipErrorNotSupported;
}

hipError_t hip_hipStreamWaitValue64(hipStream_t stream, void *address, uint64_t value, unsigned int flags,
                                    uint64_t mask) {
    const hipError_t result = hip_ready();
    if (result != hipSuccess)
        return result;
    return is_whole(mask, UINT64_MAX) ? cuStreamWaitValue64_v2(stream, (CUdeviceptr)address, value, flags)
                                      : hipErrorNotSupported;
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
    return result != hipSuccess ? result : hip_ended();
}

hipError_t hip_hipEventSynchronize(hipEvent_t event) {
    hipError_t result = hip_ready();
    if (result == hipSuccess)
        result = cuEventSynchronize(event);
    return result != hipSuccess ? result : hip_ended();
}
