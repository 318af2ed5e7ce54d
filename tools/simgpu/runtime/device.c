/* Which device a thread works on, and its context: the primary one, unless the program has made another current. And what devices
 * are, for which no context is needed. */
#include <pthread.h>
#include <string.h>

#include "runtime.h"

enum { MOST_DEVICES = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext primary[MOST_DEVICES];

static _Thread_local int chosen; /* by cudaSetDevice */
/* Asked once a thread and not before every call: each question costs virtual time that the real runtime's does not. */
static _Thread_local bool bound;

static cudaError_t check(int device) {
    int count = 0;
    cudaError_t result = rt_start();
    if (result == cudaSuccess)
        result = rt_calls[0].cuDeviceGetCount(&count);
    return result != cudaSuccess                                     ? result
           : device < 0 || device >= count || device >= MOST_DEVICES ? cudaErrorInvalidDevice
                                                                     : cudaSuccess;
}

cudaError_t rt_context_of(int device, CUcontext *context) {
    cudaError_t result = check(device);
    if (result != cudaSuccess)
        return result;
    pthread_mutex_lock(&lock);
    if (primary[device] == NULL)
        result = rt_calls[0].cuDevicePrimaryCtxRetain(&primary[device], device);
    *context = primary[device];
    pthread_mutex_unlock(&lock);
    return result;
}

static cudaError_t bind_to(int device) {
    CUcontext context = NULL;
    cudaError_t result = rt_context_of(device, &context);
    if (result == cudaSuccess)
        result = rt_calls[0].cuCtxSetCurrent(context);
    bound = result == cudaSuccess;
    return result;
}

cudaError_t rt_ready(void) {
    if (bound)
        return cudaSuccess;
    CUcontext current = NULL;
    const cudaError_t result = rt_start();
    if (result != cudaSuccess)
        return result;
    if (rt_calls[0].cuCtxGetCurrent(&current) != CUDA_SUCCESS || current == NULL)
        return bind_to(chosen);
    bound = true;
    return cudaSuccess;
}

bool rt_ready_again(void) {
    return bind_to(chosen) == cudaSuccess;
}

cudaError_t rt_device(int *out) {
    const cudaError_t result = rt_start();
    if (result == cudaSuccess && rt_calls[0].cuCtxGetDevice(out) != CUDA_SUCCESS)
        *out = chosen;
    return result;
}

cudaError_t rt_cudaGetDevice(int *device) {
    return device != NULL ? rt_device(device) : cudaErrorInvalidValue;
}

cudaError_t rt_cudaSetDevice(int device) {
    const cudaError_t result = bind_to(device);
    if (result == cudaSuccess)
        chosen = device;
    return result;
}

/* ---- what devices are ---- */

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
