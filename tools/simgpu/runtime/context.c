/* Which device a thread works on, and its context: the primary one, unless the program has made another current. */
#include <pthread.h>

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
    bound = false;
    return rt_ready() == cudaSuccess;
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

cudaError_t rt_cudaInitDevice(int device, unsigned int device_flags, unsigned int flags) {
    CUcontext context;
    cudaError_t result = check(device);
    if (result == cudaSuccess && flags != 0)
        result = rt_calls[0].cuDevicePrimaryCtxSetFlags(device, device_flags);
    return result != cudaSuccess ? result : rt_context_of(device, &context);
}

cudaError_t rt_cudaSetDeviceFlags(unsigned int flags) {
    int device = 0;
    const cudaError_t result = rt_device(&device);
    return result != cudaSuccess ? result : rt_calls[0].cuDevicePrimaryCtxSetFlags(device, flags);
}

cudaError_t rt_cudaGetDeviceFlags(unsigned int *flags) {
    const cudaError_t result = rt_ready();
    return result != cudaSuccess ? result : rt_calls[0].cuCtxGetFlags(flags);
}

/* The next call makes everything anew. */
cudaError_t rt_cudaDeviceReset(void) {
    int device = 0;
    cudaError_t result = rt_device(&device);
    if (result != cudaSuccess || device >= MOST_DEVICES)
        return result;
    pthread_mutex_lock(&lock);
    if (primary[device] != NULL)
        rt_calls[0].cuDevicePrimaryCtxRelease(device);
    primary[device] = NULL;
    pthread_mutex_unlock(&lock);
    result = rt_calls[0].cuDevicePrimaryCtxReset(device);
    rt_calls[0].cuCtxSetCurrent(NULL);
    bound = false;
    return result;
}

cudaError_t rt_cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
    CUcontext context = NULL;
    cudaError_t result = rt_ready();
    if (result == cudaSuccess)
        result = rt_context_of(peer, &context);
    return result != cudaSuccess ? result : rt_calls[0].cuCtxEnablePeerAccess(context, flags);
}

cudaError_t rt_cudaDeviceDisablePeerAccess(int peer) {
    CUcontext context = NULL;
    cudaError_t result = rt_ready();
    if (result == cudaSuccess)
        result = rt_context_of(peer, &context);
    return result != cudaSuccess ? result : rt_calls[0].cuCtxDisablePeerAccess(context);
}
