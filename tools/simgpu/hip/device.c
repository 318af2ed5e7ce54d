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

hipError_t hip_hipDeviceSynchronize(void) {
    hipError_t result = hip_ready();
    if (result == hipSuccess)
        result = cuCtxSynchronize();
    return hip_waited(result);
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

hipError_t hip_hipCtxSetCurrent(hipCtx_t context) {
    const hipError_t result = hip_start();
    return result != hipSuccess ? result : cuCtxSetCurrent(context);
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

/* Numbers of HIP's attributes and of the engine's; those not listed are 0. */
static const struct {
    int hip, engine;
} attributes[] = {
    {0, 32},                       /* EccEnabled */
    {2, 40},                       /* AsyncEngineCount */
    {3, 19},                       /* CanMapHostMemory */
    {5, 13},                       /* ClockRate */
    {6, 20},                       /* ComputeMode */
    {8, 31},                       /* ConcurrentKernels */
    {9, 89},                       /* ConcurrentManagedAccess */
    {10, 95},                      /* CooperativeLaunch */
    {11, 95},                      /* CooperativeMultiDeviceLaunch */
    {19, 38},                      /* L2CacheSize */
    {23, 75},                      /* ComputeCapabilityMajor */
    {24, 83},                      /* ManagedMemory */
    {25, 106},                     /* MaxBlocksPerMultiProcessor */
    {26, 2},                       /* MaxBlockDimX, and so on */
    {27, 3},     {28, 4}, {29, 5}, /* MaxGridDimX, and so on */
    {30, 6},     {31, 7}, {56, 1}, /* MaxThreadsPerBlock */
    {57, 39},                      /* MaxThreadsPerMultiProcessor */
    {58, 11},                      /* MaxPitch */
    {59, 37},                      /* MemoryBusWidth */
    {60, 36},                      /* MemoryClockRate */
    {61, 76},                      /* ComputeCapabilityMinor */
    {63, 16},                      /* MultiprocessorCount */
    {67, 33},                      /* PciBusId */
    {68, 34},                      /* PciDeviceId */
    {69, 50},                      /* PciDomainId */
    {71, 12},                      /* MaxRegistersPerBlock */
    {72, 82},                      /* MaxRegistersPerMultiprocessor */
    {74, 8},                       /* MaxSharedMemoryPerBlock */
    {75, 97},                      /* SharedMemPerBlockOptin */
    {76, 81},                      /* SharedMemPerMultiprocessor */
    {78, 78},                      /* StreamPrioritiesSupported */
    {81, 14},                      /* TextureAlignment */
    {83, 9},                       /* TotalConstantMemory */
    {85, 41},                      /* UnifiedAddressing */
    {87, 10},                      /* WarpSize */
    {90, 99},                      /* HostRegisterSupported */
    {10002, 81},                   /* MaxSharedMemoryPerMultiprocessor */
    {10011, 19},                   /* IsLargeBar */
    {10013, 94},                   /* CanUseStreamWaitValue */
    {10015, 16},                   /* PhysicalMultiProcessorCount */
};

enum { CUDA_COMPATIBLE_END = 9999, AMD_BEGIN = 10000, AMD_END = 10100, TOTAL_MEMORY = 84, VECTOR_REGISTERS = 10019 };

static int engines(int device, int id) {
    int value = 0;
    cuDeviceGetAttribute(&value, id, device);
    return value;
}

hipError_t hip_hipDeviceGetAttribute(int *value, int id, int device) {
    const hipError_t result = check(device);
    if (value == NULL || id < 0 || id >= AMD_END || (id > CUDA_COMPATIBLE_END / 100 && id < AMD_BEGIN))
        return hipErrorInvalidValue;
    if (result != hipSuccess)
        return result;
    *value = 0;
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        if (attributes[i].hip == id)
            *value = engines(device, attributes[i].engine);
    if (id == VECTOR_REGISTERS)
        *value = MOST_REGISTERS;
    if (id == TOTAL_MEMORY) /* an int: what fits */
        *value = INT32_MAX;
    return hipSuccess;
}

hipError_t hip_hipDeviceGetName(char *name, int length, hipDevice_t device) {
    const hipError_t result = check(device);
    return result != hipSuccess ? result : cuDeviceGetName(name, length, device);
}

hipError_t hip_hipDeviceGetUuid(hipUUID *uuid, hipDevice_t device) {
    const hipError_t result = check(device);
    return result != hipSuccess ? result : cuDeviceGetUuid_v2(uuid, device);
}

/* The fields that both layouts have. */
#define FILL(out, device)                                                                                              \
    do {                                                                                                               \
        const struct gpu *const gpu = sim_gpu(device);                                                                 \
        memset(out, 0, sizeof *(out));                                                                                 \
        snprintf((out)->name, sizeof(out)->name, "%s", gpu->name);                                                     \
        snprintf((out)->gcnArchName, sizeof(out)->gcnArchName, "%s:sramecc+:xnack-", gpu->architecture);               \
        (out)->totalGlobalMem = (size_t)gpu->memory_gib << 30;                                                         \
        (out)->sharedMemPerBlock = (out)->maxSharedMemoryPerMultiProcessor = (size_t)gpu->shared;                      \
        (out)->regsPerBlock = 65536;                                                                                   \
        (out)->warpSize = WARP;                                                                                        \
        (out)->maxThreadsPerBlock = MAX_BLOCK_THREADS;                                                                 \
        (out)->maxThreadsDim[0] = (out)->maxThreadsDim[1] = (out)->maxThreadsDim[2] = MAX_BLOCK_THREADS;               \
        (out)->maxGridSize[0] = INT32_MAX;                                                                             \
        (out)->maxGridSize[1] = (out)->maxGridSize[2] = 65536;                                                         \
        (out)->clockRate = engines(device, 13);                                                                        \
        (out)->memoryClockRate = engines(device, 36);                                                                  \
        (out)->memoryBusWidth = engines(device, 37);                                                                   \
        (out)->l2CacheSize = engines(device, 38);                                                                      \
        (out)->totalConstMem = INT32_MAX;                                                                              \
        (out)->major = gpu->major;                                                                                     \
        (out)->minor = gpu->minor;                                                                                     \
        (out)->multiProcessorCount = gpu->multiprocessors;                                                             \
        (out)->maxThreadsPerMultiProcessor = gpu->threads;                                                             \
        (out)->clockInstructionRate = 100000;                                                                          \
        (out)->arch = (1u << 17) - 1; /* every feature */                                                              \
        (out)->concurrentKernels = (out)->canMapHostMemory = (out)->managedMemory = 1;                                 \
        (out)->pciBusID = gpu->number + 1;                                                                             \
        (out)->cooperativeLaunch = (out)->cooperativeMultiDeviceLaunch = 1;                                            \
        (out)->memPitch = INT32_MAX;                                                                                   \
        (out)->textureAlignment = (out)->texturePitchAlignment = 256;                                                  \
        (out)->isLargeBar = (out)->concurrentManagedAccess = 1;                                                        \
    } while (0)

static hipError_t check_properties(const void *properties, int device) {
    const hipError_t result = check(device);
    return properties == NULL ? hipErrorInvalidValue : result;
}

hipError_t hip_hipGetDevicePropertiesR0600(hipDeviceProp_tR0600 *properties, int device) {
    const hipError_t result = check_properties(properties, device);
    if (result != hipSuccess)
        return result;
    FILL(properties, device);
    cuDeviceGetUuid_v2(&properties->uuid, device);
    properties->sharedMemPerMultiprocessor = properties->sharedMemPerBlockOptin = properties->sharedMemPerBlock;
    properties->regsPerMultiprocessor = 65536;
    properties->maxBlocksPerMultiProcessor = 2;
    properties->streamPrioritiesSupported = properties->unifiedAddressing = properties->hostRegisterSupported = 1;
    properties->asyncEngineCount = 8;
    return hipSuccess;
}

hipError_t hip_hipGetDevicePropertiesR0000(hipDeviceProp_tR0000 *properties, int device) {
    const hipError_t result = check_properties(properties, device);
    if (result != hipSuccess)
        return result;
    FILL(properties, device);
    properties->gcnArch = 910;
    return hipSuccess;
}

hipError_t hip_hipGetDeviceProperties(hipDeviceProp_tR0000 *properties, int device) {
    return hip_done(hip_hipGetDevicePropertiesR0000(properties, device));
}
