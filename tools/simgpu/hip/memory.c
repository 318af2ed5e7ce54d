/* Memory. Copies are the engine's (api.def). */
#include "hip.h"

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
