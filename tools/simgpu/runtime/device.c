/* What devices are. None of these needs a context. */
#include <string.h>

#include "runtime.h"

cudaError_t rt_cudaGetDeviceCount(int *count) {
    if (count == NULL)
        return cudaErrorInvalidValue;
    *count = 0;
    const cudaError_t result = rt_start();
    return result != cudaSuccess ? result : rt_calls[0].cuDeviceGetCount(count);
}

#define PASS(call)                                                                                                     \
    const cudaError_t result = rt_start();                                                                             \
    return result != cudaSuccess ? result : rt_calls[0].call

cudaError_t rt_cudaDeviceGetAttribute(int *value, int attribute, int device) {
    PASS(cuDeviceGetAttribute(value, attribute, device));
}

cudaError_t rt_cudaDeviceGetPCIBusId(char *id, int bytes, int device) {
    PASS(cuDeviceGetPCIBusId(id, bytes, device));
}

cudaError_t rt_cudaDeviceGetByPCIBusId(int *device, const char *id) {
    PASS(cuDeviceGetByPCIBusId(device, id));
}

cudaError_t rt_cudaDeviceCanAccessPeer(int *can, int device, int peer) {
    PASS(cuDeviceCanAccessPeer(can, device, peer));
}

static int attribute_of(int attribute, int device) {
    int value = 0;
    return rt_calls[0].cuDeviceGetAttribute(&value, attribute, device) == CUDA_SUCCESS ? value : 0;
}

static cudaError_t fill(struct cudaDeviceProp *properties, int device) {
    CUdevice handle;
    cudaError_t result = rt_start();
    if (result == cudaSuccess)
        result = rt_calls[0].cuDeviceGet(&handle, device);
    if (result != cudaSuccess)
        return result;
    memset(properties, 0, sizeof *properties);
    rt_calls[0].cuDeviceGetName(properties->name, sizeof properties->name, device);
    rt_calls[0].cuDeviceGetUuid(&properties->uuid, device);
    rt_calls[0].cuDeviceTotalMem(&properties->totalGlobalMem, device);
#define PROP(field, attribute) properties->field = (__typeof__(properties->field))attribute_of(attribute, device);
#include "props.def"
#undef PROP
    return cudaSuccess;
}

/* The name without a suffix is, in libcudart.so.12, still the one of CUDA 11, whose structure ends earlier. */
cudaError_t rt_cudaGetDeviceProperties(void *properties, int device) {
#if RUNTIME == 12
    const size_t bytes = offsetof(struct cudaDeviceProp, hostRegisterSupported);
#else
    const size_t bytes = sizeof(struct cudaDeviceProp);
#endif
    struct cudaDeviceProp full;
    if (properties == NULL)
        return cudaErrorInvalidValue;
    const cudaError_t result = fill(&full, device);
    if (result == cudaSuccess)
        memcpy(properties, &full, bytes);
    return result;
}

#if RUNTIME == 12
cudaError_t rt_cudaGetDeviceProperties_v2(struct cudaDeviceProp *properties, int device) {
    return properties != NULL ? fill(properties, device) : cudaErrorInvalidValue;
}
#endif
