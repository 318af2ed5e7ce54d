/* Devices: how many, what they are called, and their attributes. */
#include <stdio.h>
#include <string.h>

#include "sim.h"

CUresult sim_device_check(CUdevice device) {
    return device >= 0 && device < sim_config.devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

SIM_API CUresult cuDeviceGetCount(int *count) {
    SIM_CALL();
    if (count == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *count = sim_config.devices;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    SIM_CALL();
    if (device == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *device = ordinal;
    return sim_device_check(ordinal);
}

SIM_API CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
    SIM_CALL();
    if (name == NULL || length <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (sim_device_check(device) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(name, (size_t)length, "%s", sim_gpu(device)->name);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
    SIM_CALL();
    if (uuid == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (sim_device_check(device) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_DEVICE;
    char made[32];
    snprintf(made, sizeof made, "simgpu-%-6.6s-%02u", sim_gpu(device)->key,
             (unsigned int)sim_gpu(device)->number % 100);
    memcpy(uuid->bytes, made, sizeof uuid->bytes);
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuDeviceGetUuid, cuDeviceGetUuid_v2, (CUuuid * uuid, CUdevice device), uuid, device)

SIM_API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    SIM_CALL();
    if (bytes == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (sim_device_check(device) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_DEVICE;
    *bytes = (size_t)sim_gpu(device)->memory_gib << 30;
    return CUDA_SUCCESS;
}

/* Attributes that are the same on every GPU of the table; those not listed in either place are 0. */
struct attribute {
    int id, value;
};

static const struct attribute usual[] = {{1, MAX_BLOCK_THREADS},
                                         {2, 1024},
                                         {3, 1024},
                                         {4, 64},
                                         {5, 2147483647},
                                         {6, 65535},
                                         {7, 65535},
                                         {8, DEFAULT_DYNAMIC},
                                         {9, 65536},
                                         {10, WARP},
                                         {11, 2147483647},
                                         {31, 1},
                                         {40, 3},
                                         {41, 1},
                                         {78, 1},
                                         {95, 1},
                                         {99, 1},
                                         {111, RESERVED_SHARED}};

/* clock (kHz), memory clock (kHz), bus width (bits), L2 (bytes), memory bandwidth (GB/s): NVIDIA's data sheets of the
 * A40, L40S, A100 80GB SXM, H100 SXM, H200 and of one GPU of an HGX B200; AMD's of the MI250X (one die) and MI300X.
 * host, peer (GB/s, one way): copies to and from the host, over PCIe 5 as NVIDIA shows for NVbandwidth
 * (host_to_device_memcpy_ce: 55.6), over PCIe 4 half of that; MI250X: OLCF's Frontier user guide. Between GPUs, data sheets:
 * half of what NVLink moves in both directions; MI250X: the other die, MI300X: one link; where neither is there, PCIe. */
struct speeds {
    const char *key;
    int clock, memory_clock, bus, l2, bandwidth, host, peer;
};

static const struct speeds speeds[] = {
    {"a40", 1740000, 7251000, 384, 6291456, 696, 28, 28},
    {"l40s", 2520000, 9001000, 384, 100663296, 864, 28, 28},
    {"a100", 1410000, 1593000, 5120, 41943040, 2039, 28, 300},
    {"h100", 1980000, 2619000, 5120, 52428800, 3350, 55, 450},
    {"h200", 1980000, 3201000, 6144, 62914560, 4800, 55, 450},
    {"b200", 1965000, 3996000, 8192, 132644864, 8000, 55, 900},
    {"mi250x", 1700000, 1600000, 4096, 8388608, 1638, 36, 200},
    {"mi300x", 2100000, 2525000, 8192, 4194304, 5300, 55, 64},
};

static const struct speeds *speeds_of(const struct gpu *gpu) {
    static const struct speeds unknown = {"", 1500000, 0, 0, 0, 1000000, 28, 28}; /* bandwidth: never short */
    for (size_t i = 0; i < sizeof speeds / sizeof *speeds; i++)
        if (strcmp(speeds[i].key, gpu->key) == 0)
            return &speeds[i];
    return &unknown;
}

double sim_bandwidth(const struct gpu *gpu) {
    return speeds_of(gpu)->bandwidth * 1e3;
}

double sim_link(const struct gpu *gpu, bool peer) {
    const struct speeds *const row = speeds_of(gpu);
    return (peer ? row->peer : row->host) * 1e3;
}

static int speed_of(int id, const struct gpu *gpu) {
    const struct speeds *const row = speeds_of(gpu);
    return id == 13 ? row->clock : id == 36 ? row->memory_clock : id == 37 ? row->bus : row->l2;
}

static int attribute_of(int id, CUdevice device) {
    const struct gpu *const gpu = sim_gpu(device);
    switch (id) {
    case 12:
    case 82:
        return gpu->registers;
    case 13:
    case 36:
    case 37:
    case 38:
        return speed_of(id, gpu);
    case 16:
        return gpu->multiprocessors;
    case 33:
        return gpu->number + 1;
    case 39:
        return gpu->threads;
    case 75:
        return gpu->major;
    case 76:
        return gpu->minor;
    case 81:
        return gpu->shared;
    case 97:
        return gpu->shared_optin;
    case 106:
        return gpu->blocks;
    case 120: /* cluster launch */
    case 127: /* tensor maps */
        return gpu->major >= 9;
    default:
        break;
    }
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (usual[i].id == id)
            return usual[i].value;
    return 0;
}

SIM_API CUresult cuDeviceGetAttribute(int *value, int id, CUdevice device) {
    SIM_CALL();
    if (value == NULL || id < 1 || id > 147)
        return CUDA_ERROR_INVALID_VALUE;
    if (sim_device_check(device) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_DEVICE;
    *value = attribute_of(id, device);
    return CUDA_SUCCESS;
}
