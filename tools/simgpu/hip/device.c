/* Devices: which one a thread works on, which are visible, and what they say of themselves. A device has one context, the engine's
 * primary one. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    const bool bound = sim_is_initialized() && sim_context_check(sim_current_context()) == CUDA_SUCCESS;
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

hipError_t hip_hipStreamGetDevice(hipStream_t stream, hipDevice_t *device) {
    const hipError_t result = hip_ready();
    if (result == hipSuccess && device != NULL)
        *device = hip_device_of(stream);
    return device != NULL ? result : hipErrorInvalidValue;
}

int hip_hipGetStreamDeviceId(hipStream_t stream) {
    return hip_ready() == hipSuccess ? hip_device_of(stream) : -1;
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

/* HIP_VISIBLE_DEVICES hides devices, or puts them in another order. What is no device ends the list. */
void sim_config_hide(void) {
    struct gpu kept[MAX_DEVICES];
    bool taken[MAX_DEVICES] = {false};
    int count = 0;
    const char *at = getenv("HIP_VISIBLE_DEVICES");
    if (at == NULL)
        return;
    for (char *end; count < sim_config.devices; at = end + 1) {
        const long number = strtol(at, &end, 10);
        if (end == at || number < 0 || number >= sim_config.devices || taken[number])
            break;
        taken[number] = true;
        kept[count++] = sim_config.gpus[number];
        if (*end != ',')
            break;
    }
    memcpy(sim_config.gpus, kept, (size_t)count * sizeof *kept);
    sim_config.devices = count;
}

/* ---- what devices say of themselves ---- */

hipError_t hip_hipDeviceGetAttribute(int *value, int id, int device) {
    enum { MULTIPROCESSORS = 63 };
    const hipError_t result = check(device);
    if (value == NULL || id != MULTIPROCESSORS)
        return hipErrorInvalidValue;
    if (result == hipSuccess)
        *value = sim_gpu(device)->multiprocessors;
    return result;
}

/* Where hipDeviceProp_t has its fields (hip_runtime_api.h): before 6.0, and since. All others are 0. */
struct layout {
    size_t bytes, shared, block_threads, multiprocessors, threads, architecture, shared_of_multiprocessor;
};

static hipError_t properties_of(uint8_t *properties, int device, const struct layout *layout) {
    const hipError_t result = check(device);
    if (properties == NULL || result != hipSuccess)
        return properties == NULL ? hipErrorInvalidValue : result;
    const struct gpu *const gpu = sim_gpu(device);
    const int block_threads = MAX_BLOCK_THREADS;
    const size_t shared = (size_t)gpu->shared;
    memset(properties, 0, layout->bytes);
    snprintf((char *)properties, 256, "%s", gpu->name);
    memcpy(properties + layout->shared, &shared, sizeof shared);
    memcpy(properties + layout->block_threads, &block_threads, sizeof block_threads);
    memcpy(properties + layout->multiprocessors, &gpu->multiprocessors, sizeof gpu->multiprocessors);
    memcpy(properties + layout->threads, &gpu->threads, sizeof gpu->threads);
    snprintf((char *)properties + layout->architecture, 256, "%s:sramecc+:xnack-", gpu->architecture);
    memcpy(properties + layout->shared_of_multiprocessor, &shared, sizeof shared);
    return hipSuccess;
}

hipError_t hip_hipGetDevicePropertiesR0600(void *properties, int device) {
    return properties_of(properties, device, &(struct layout){1472, 296, 320, 388, 624, 1160, 1416});
}

hipError_t hip_hipGetDeviceProperties(void *properties, int device) {
    return hip_done(properties_of(properties, device, &(struct layout){792, 264, 280, 336, 344, 396, 376}));
}
