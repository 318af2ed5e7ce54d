/* Which device a thread works on. A device has one context, the engine's primary one. */
#include <pthread.h>

#include "hip.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext primary[MAX_DEVICES];

static _Thread_local int chosen; /* by hipSetDevice */

hipError_t hip_start(void) {
    return sim_is_initialized() ? hipSuccess : cuInit(0);
}

static hipError_t check(int device) {
    const hipError_t result = hip_start();
    return result != hipSuccess ? result : sim_device_check(device);
}

hipError_t hip_context_of(int device, CUcontext *context) {
    hipError_t result = check(device);
    if (result != hipSuccess)
        return result;
    pthread_mutex_lock(&lock);
    if (primary[device] == NULL)
        result = cuDevicePrimaryCtxRetain(&primary[device], device);
    *context = primary[device];
    pthread_mutex_unlock(&lock);
    return result;
}

static hipError_t bind_to(int device) {
    CUcontext context = NULL;
    hipError_t result = hip_context_of(device, &context);
    return result != hipSuccess ? result : cuCtxSetCurrent(context);
}

/* Another thread may have reset the device, and the program may have taken the context away. */
hipError_t hip_ready(void) {
    sim_lock();
    const bool bound = sim_is_initialized() && sim_current_context() != NULL;
    sim_unlock();
    return bound ? hipSuccess : bind_to(chosen);
}

static int current(void) {
    sim_lock();
    const struct context *const context = sim_current_context();
    const int device = context != NULL ? context->device : chosen;
    sim_unlock();
    return device;
}

int hip_device_of(hipStream_t handle) {
    sim_lock();
    const struct stream *const stream = sim_handle_get(handle, KIND_STREAM);
    const int device = stream != NULL ? stream->context->device : -1;
    sim_unlock();
    return device >= 0 ? device : current();
}

hipError_t hip_hipInit(unsigned int flags) {
    return flags == 0 ? hip_start() : hipErrorInvalidValue;
}

hipError_t hip_hipGetDeviceCount(int *count) {
    if (count == NULL)
        return hipErrorInvalidValue;
    const hipError_t result = hip_start();
    *count = result == hipSuccess ? sim_config.devices : 0;
    return result;
}

hipError_t hip_hipGetDevice(int *device) {
    if (device == NULL)
        return hipErrorInvalidValue;
    const hipError_t result = hip_start();
    if (result == hipSuccess)
        *device = current();
    return result;
}

hipError_t hip_hipSetDevice(int device) {
    const hipError_t result = bind_to(device);
    if (result == hipSuccess)
        chosen = device;
    return result;
}

hipError_t hip_hipSetDeviceFlags(unsigned int flags) {
    const hipError_t result = hip_ready();
    return result != hipSuccess ? result : cuDevicePrimaryCtxSetFlags_v2(current(), flags);
}

hipError_t hip_hipDeviceSynchronize(void) {
    hipError_t result = hip_ready();
    if (result == hipSuccess)
        result = cuCtxSynchronize();
    return result != hipSuccess ? result : hip_ended();
}

hipError_t hip_hipCtxSynchronize(void) {
    return hip_hipDeviceSynchronize();
}

/* The next call makes everything anew. */
hipError_t hip_hipDeviceReset(void) {
    const hipError_t result = hip_ready();
    if (result != hipSuccess)
        return result;
    const int device = current();
    pthread_mutex_lock(&lock);
    primary[device] = NULL;
    pthread_mutex_unlock(&lock);
    hip_forget_device(device);
    return cuDevicePrimaryCtxReset_v2(device);
}

static hipError_t peer_context(int peer, CUcontext *context) {
    const hipError_t result = hip_ready();
    return result != hipSuccess ? result : hip_context_of(peer, context);
}

hipError_t hip_hipDeviceEnablePeerAccess(int peer, unsigned int flags) {
    CUcontext context = NULL;
    const hipError_t result = peer_context(peer, &context);
    return result != hipSuccess ? result : cuCtxEnablePeerAccess(context, flags);
}

hipError_t hip_hipDeviceDisablePeerAccess(int peer) {
    CUcontext context = NULL;
    const hipError_t result = peer_context(peer, &context);
    return result != hipSuccess ? result : cuCtxDisablePeerAccess(context);
}

hipError_t hip_hipCtxCreate(hipCtx_t *context, unsigned int flags, hipDevice_t device) {
    (void)flags;
    if (context == NULL)
        return hipErrorInvalidValue;
    const hipError_t result = hip_context_of(device, context);
    return result != hipSuccess ? result : cuCtxPushCurrent(*context);
}

hipError_t hip_hipCtxDestroy(hipCtx_t context) {
    return context != NULL ? hipSuccess : hipErrorInvalidValue;
}

hipError_t hip_hipCtxSetCurrent(hipCtx_t context) {
    const hipError_t result = hip_start();
    return result != hipSuccess ? result : cuCtxSetCurrent(context);
}
