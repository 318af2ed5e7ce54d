/* Memory and copies. The runtime names a direction, which the engine's addresses say by themselves. */
#include "hip.h"

enum { COPY_DEFAULT = 4, COPY_WITHOUT_CU = 1024 }; /* the directions: 0 to 4, and one for the copy engine */

static hipError_t allocate(void **address, size_t bytes, CUresult (*engine)(CUdeviceptr *, size_t)) {
    const hipError_t result = hip_ready();
    if (address == NULL)
        return hipErrorInvalidValue;
    if (result != hipSuccess)
        return result;
    *address = NULL;
    return bytes > 0 ? engine((CUdeviceptr *)address, bytes) : hipSuccess;
}

static CUresult on_host(CUdeviceptr *address, size_t bytes) {
    return cuMemHostAlloc((void **)address, bytes, 0);
}

hipError_t hip_hipMalloc(void **address, size_t bytes) {
    return allocate(address, bytes, cuMemAlloc_v2);
}

hipError_t hip_hipHostMalloc(void **address, size_t bytes, unsigned int flags) {
    (void)flags;
    return allocate(address, bytes, on_host);
}

hipError_t hip_hipMallocHost(void **address, size_t bytes) {
    return allocate(address, bytes, on_host);
}

hipError_t hip_hipFree(void *address) {
    hipError_t result = hip_ready();
    if (result == hipSuccess)
        result = cuMemFree_v2((CUdeviceptr)address);
    return hip_waited(result);
}

hipError_t hip_hipHostFree(void *address) {
    return hip_hipFree(address);
}

/* ---- copies ---- */

static hipError_t may_copy(int kind) {
    const hipError_t result = hip_ready();
    if (result != hipSuccess)
        return result;
    return kind >= 0 && (kind <= COPY_DEFAULT || kind == COPY_WITHOUT_CU) ? hipSuccess : hipErrorInvalidMemcpyDirection;
}

/* Begins in memory of ours and ends behind it. */
static bool overruns(const void *address, size_t bytes) {
    sim_lock();
    const CUdeviceptr at = (CUdeviceptr)address;
    const bool found = sim_memory_has(at, 1) && !sim_memory_has(at, bytes);
    sim_unlock();
    return found;
}

hipError_t hip_hipMemcpy(bool per_thread, void *to, const void *from, size_t bytes, int kind) {
    hipError_t result = may_copy(kind);
    if (result == hipSuccess && (overruns(to, bytes) || overruns(from, bytes)))
        result = hipErrorInvalidValue;
    if (result != hipSuccess || bytes == 0)
        return result;
    result = (per_thread ? cuMemcpy_ptds : cuMemcpy)((CUdeviceptr)to, (CUdeviceptr)from, bytes);
    return hip_waited(result);
}

hipError_t hip_hipMemcpyAsync(bool per_thread, void *to, const void *from, size_t bytes, int kind, hipStream_t stream) {
    hipError_t result = may_copy(kind);
    if (result == hipSuccess && (overruns(to, bytes) || overruns(from, bytes)))
        result = hipErrorInvalidValue;
    if (result != hipSuccess || bytes == 0)
        return result;
    return (per_thread ? cuMemcpyAsync_ptsz : cuMemcpyAsync)((CUdeviceptr)to, (CUdeviceptr)from, bytes, stream);
}

hipError_t hip_hipMemcpyWithStream(void *to, const void *from, size_t bytes, int kind, hipStream_t stream) {
    const hipError_t result = hip_hipMemcpyAsync(false, to, from, bytes, kind, stream);
    return result != hipSuccess ? result : hip_hipStreamSynchronize(false, stream);
}

static hipError_t peers(int to, int from, CUcontext *to_context, CUcontext *from_context) {
    hipError_t result = hip_ready();
    if (result == hipSuccess)
        result = hip_context_of(to, to_context);
    return result != hipSuccess ? result : hip_context_of(from, from_context);
}

hipError_t hip_hipMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes) {
    CUcontext there = NULL, here = NULL;
    const hipError_t result = peers(to_device, from_device, &there, &here);
    return result != hipSuccess ? result : cuMemcpyPeer((CUdeviceptr)to, there, (CUdeviceptr)from, here, bytes);
}

hipError_t hip_hipMemset(bool per_thread, void *to, int value, size_t bytes) {
    const hipError_t result = hip_ready();
    if (result != hipSuccess || bytes == 0)
        return result;
    return (per_thread ? cuMemsetD8_v2_ptds : cuMemsetD8_v2)((CUdeviceptr)to, (unsigned char)value, bytes);
}

hipError_t hip_hipMemsetAsync(bool per_thread, void *to, int value, size_t bytes, hipStream_t stream) {
    const hipError_t result = hip_ready();
    if (result != hipSuccess || bytes == 0)
        return result;
    return (per_thread ? cuMemsetD8Async_ptsz : cuMemsetD8Async)((CUdeviceptr)to, (unsigned char)value, bytes, stream);
}
