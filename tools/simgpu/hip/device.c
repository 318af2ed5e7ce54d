/* What devices say of themselves. */
#include <stdio.h>
#include <string.h>

#include "hip.h"

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

static hipError_t check(int device) {
    const hipError_t result = hip_start();
    return result != hipSuccess ? result : sim_device_check(device);
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

hipError_t hip_hipDeviceGet(hipDevice_t *device, int ordinal) {
    const hipError_t result = check(ordinal);
    if (device == NULL)
        return hipErrorInvalidValue;
    *device = ordinal;
    return result;
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
