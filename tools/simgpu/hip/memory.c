/* Memory and copies. The runtime names a direction, which the engine's addresses say by themselves. */
#include "hip.h"

enum { COPY_DEFAULT = 4 }; /* the directions: 0 to 4 */

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

hipError_t hip_hipMallocHost(void **address, size_t bytes) {
    return allocate(address, bytes, on_host);
}

hipError_t hip_hipFree(void *address) {
    hipError_t result = hip_ready();
    if (result == hipSuccess)
        result = cuMemFree_v2((CUdeviceptr)address);
    return hip_waited(result);
}

/* ---- copies ---- */

hipError_t hip_hipMemcpy(bool per_thread, void *to, const void *from, size_t bytes, int kind) {
    const hipError_t result = hip_ready();
    if (kind < 0 || kind > COPY_DEFAULT)
        return hipErrorInvalidMemcpyDirection;
    if (result != hipSuccess || bytes == 0)
        return result;
    return hip_waited((per_thread ? cuMemcpy_ptds : cuMemcpy)((CUdeviceptr)to, (CUdeviceptr)from, bytes));
}

hipError_t hip_hipMemcpyAsync(bool per_thread, void *to, const void *from, size_t bytes, int kind, hipStream_t stream) {
    const hipError_t result = hip_ready();
    if (kind < 0 || kind > COPY_DEFAULT)
        return hipErrorInvalidMemcpyDirection;
    if (result != hipSuccess || bytes == 0)
        return result;
    return (per_thread ? cuMemcpyAsync_ptsz : cuMemcpyAsync)((CUdeviceptr)to, (CUdeviceptr)from, bytes, stream);
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
