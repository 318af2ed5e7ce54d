/* Memory and copies. The runtime names a direction, the driver has a function for each. */
#include <string.h>

#include "runtime.h"

/* Nothing of nothing is a success. */
cudaError_t rt_cudaMalloc(void **address, size_t bytes) {
    if (address == NULL)
        return cudaErrorInvalidValue;
    *address = NULL;
    const cudaError_t result = rt_ready();
    return result != cudaSuccess || bytes == 0 ? result : rt_calls[0].cuMemAlloc((CUdeviceptr *)address, bytes);
}

/* cudaFree(NULL) is how programs make a context. */
cudaError_t rt_cudaFree(void *address) {
    const cudaError_t result = rt_ready();
    return result != cudaSuccess || address == NULL ? result : rt_calls[0].cuMemFree((CUdeviceptr)address);
}

cudaError_t rt_cudaFreeHost(void *address) {
    const cudaError_t result = rt_ready();
    return result != cudaSuccess || address == NULL ? result : rt_calls[0].cuMemFreeHost(address);
}

/* ---- copies ---- */

cudaError_t rt_cudaMemcpy(bool per_thread, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
    const struct rt_calls *const calls = &rt_calls[per_thread];
    const cudaError_t result = rt_ready();
    if (result != cudaSuccess || bytes == 0)
        return result;
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return calls->cuMemcpyHtoD((CUdeviceptr)to, from, bytes);
    case cudaMemcpyDeviceToHost:
        return calls->cuMemcpyDtoH(to, (CUdeviceptr)from, bytes);
    case cudaMemcpyDeviceToDevice:
        return calls->cuMemcpyDtoD((CUdeviceptr)to, (CUdeviceptr)from, bytes);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        return calls->cuMemcpy((CUdeviceptr)to, (CUdeviceptr)from, bytes);
    }
    return cudaErrorInvalidMemcpyDirection;
}

cudaError_t rt_cudaMemcpyAsync(bool per_thread, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                               cudaStream_t stream) {
    const struct rt_calls *const calls = &rt_calls[per_thread];
    const cudaError_t result = rt_ready();
    if (result != cudaSuccess || bytes == 0)
        return result;
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return calls->cuMemcpyHtoDAsync((CUdeviceptr)to, from, bytes, stream);
    case cudaMemcpyDeviceToHost:
        return calls->cuMemcpyDtoHAsync(to, (CUdeviceptr)from, bytes, stream);
    case cudaMemcpyDeviceToDevice:
        return calls->cuMemcpyDtoDAsync((CUdeviceptr)to, (CUdeviceptr)from, bytes, stream);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        return calls->cuMemcpyAsync((CUdeviceptr)to, (CUdeviceptr)from, bytes, stream);
    }
    return cudaErrorInvalidMemcpyDirection;
}
