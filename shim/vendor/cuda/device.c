/* Devices: what the driver says about them, which policy is theirs, and what communication takes there. */
#include <string.h>

#include "cuda.h"

static struct device devices[OVERLAP_DEVICES];

static uint32_t attribute(int which, int ordinal) {
    int value = 0;
    return driver.cuDeviceGetAttribute(&value, which, ordinal) == CUDA_SUCCESS && value > 0 ? (uint32_t)value : 0;
}

static void read_limits(struct overlap_gpu *gpu, int ordinal) {
    if (!driver.cuDeviceGetName || driver.cuDeviceGetName((char *)gpu->name, sizeof gpu->name, ordinal) != CUDA_SUCCESS)
        gpu->name[0] = 0;
    gpu->name[sizeof gpu->name - 1] = 0;
    gpu->major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, ordinal);
    gpu->minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, ordinal);
    gpu->multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, ordinal);
    gpu->warp_size = attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE, ordinal);
    gpu->threads = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, ordinal);
    gpu->blocks = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, ordinal);
    gpu->registers = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, ordinal);
    gpu->registers_per_block = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, ordinal);
    gpu->threads_per_block = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, ordinal);
    gpu->shared = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, ordinal);
    gpu->shared_default = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, ordinal);
    gpu->shared_optin = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, ordinal);
    gpu->shared_reserved = attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, ordinal);
    overlap_gpu_units(gpu);
}

/* Limits that make no sense, from a driver that does not answer: no arithmetic on those. */
static bool usable(const struct overlap_gpu *gpu) {
    return gpu->major >= 7 && gpu->multiprocessors && gpu->warp_size == 32 && gpu->threads && gpu->blocks &&
           gpu->registers && gpu->registers_per_block && gpu->threads_per_block && gpu->shared && gpu->shared_optin;
}

static void record(const struct device *device, const struct overlap_settings *settings) {
    struct overlap_device *entry = &overlap_current_page->devices[device->ordinal];
    CUuuid uuid = {{0}};
    if (driver.cuDeviceGetUuid_v2)
        driver.cuDeviceGetUuid_v2(&uuid, device->ordinal);
    else if (driver.cuDeviceGetUuid)
        driver.cuDeviceGetUuid(&uuid, device->ordinal);
    memcpy(entry->uuid, uuid.bytes, sizeof entry->uuid);
    memcpy(entry->name, device->gpu.name, sizeof entry->name);
    entry->index = (uint32_t)device->ordinal;
    entry->multiprocessors = device->gpu.multiprocessors;
    if (device->policy != OVERLAP_NO_POLICY) {
        struct overlap_view view = overlap_table_view(settings->table);
        const char *name = view.strings + view.policies[device->policy].name;
        strncpy((char *)entry->policy, name, sizeof entry->policy - 1);
    }
    __atomic_store_n(&entry->state, 2, __ATOMIC_RELEASE);
}

static void make(struct device *device, int ordinal, const struct overlap_settings *settings) {
    overlap_page_start(); /* the record belongs there */
    device->ordinal = ordinal;
    read_limits(&device->gpu, ordinal);
    device->policy =
        overlap_policy_for(settings->table, (const char *)device->gpu.name, (const char *)device->gpu.architecture);
    /* An empty table asks for observation only: nothing to complain about. */
    if (device->policy == OVERLAP_NO_POLICY && ((const struct overlap_table *)settings->table)->policy_count > 0)
        overlap_say("no policy is for ", (const char *)device->gpu.name, ": its launches are counted and left alone");
    if (!usable(&device->gpu))
        device->policy = OVERLAP_NO_POLICY;
    record(device, settings);
}

void device_forked(void) {
    memset(devices, 0, sizeof devices);
}

struct device *device_at(int ordinal) {
    const struct overlap_settings *settings = overlap_armed();
    if (!settings || !driver_ready() || !driver.cuDeviceGetAttribute || ordinal < 0 || ordinal >= OVERLAP_DEVICES)
        return NULL;
    struct device *device = &devices[ordinal];
    uint32_t none = 0;
    if (__atomic_compare_exchange_n(&device->state, &none, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
        make(device, ordinal, settings);
        __atomic_store_n(&device->state, 2, __ATOMIC_RELEASE);
        return device;
    }
    return overlap_wait(&device->state, 2) ? device : NULL;
}

struct device *device_current(void) {
    CUdevice ordinal = 0;
    if (!driver_ready() || !driver.cuCtxGetDevice || driver.cuCtxGetDevice(&ordinal) != CUDA_SUCCESS)
        return NULL;
    return device_at(ordinal);
}

bool device_only_one(void) {
    static int count; /* a driver's answer does not change */
    int known = __atomic_load_n(&count, __ATOMIC_RELAXED);
    if (known == 0 && driver_ready() && driver.cuDeviceGetCount && driver.cuDeviceGetCount(&known) == CUDA_SUCCESS)
        __atomic_store_n(&count, known, __ATOMIC_RELAXED);
    return known == 1;
}

const struct overlap_policy *device_policy(const struct device *device) {
    const struct overlap_settings *settings = overlap_armed();
    if (!settings || !device || device->policy == OVERLAP_NO_POLICY)
        return NULL;
    return &overlap_table_view(settings->table).policies[device->policy];
}

bool device_priority(uint32_t kind, int32_t value, int *priority) {
    int least = 0, greatest = 0;
    if (kind == OVERLAP_PRIORITY_INHERIT)
        return false;
    if (!driver_ready() || !driver.cuCtxGetStreamPriorityRange ||
        driver.cuCtxGetStreamPriorityRange(&least, &greatest) != CUDA_SUCCESS || greatest == least)
        return false;
    if (kind != OVERLAP_PRIORITY_NUMBER || value < greatest)
        value = greatest;
    *priority = value > least ? least : value;
    return true;
}

/* ---- Communication's footprint ---- */

static bool raise_to(uint32_t *component, uint32_t value) {
    uint32_t known = __atomic_load_n(component, __ATOMIC_RELAXED);
    while (known < value)
        if (__atomic_compare_exchange_n(component, &known, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return true;
    return false;
}

bool device_learn(struct device *device, const char *kernel, const struct overlap_footprint *footprint) {
    /* One-rank reductions are no collectives, and a kernel that takes nearly all that a block may take (NCCL's TMA
     * kernels) would leave room nowhere: neither says what a usual communication block needs. */
    uint64_t shared = (uint64_t)footprint->static_shared + footprint->dynamic_shared;
    if (overlap_glob_match("*oneRankReduce*", kernel) || shared * 10 > (uint64_t)device->gpu.shared_optin * 9)
        return false;
    struct overlap_footprint *known = &device->communication;
    bool grown = raise_to(&known->threads, footprint->threads);
    grown |= raise_to(&known->registers, footprint->registers);
    grown |= raise_to(&known->static_shared, footprint->static_shared);
    grown |= raise_to(&known->dynamic_shared, footprint->dynamic_shared);
    __atomic_store_n(&device->seen, 1, __ATOMIC_RELEASE);
    return grown;
}

const struct overlap_footprint *device_communication(const struct device *device, struct overlap_footprint *copy) {
    const struct overlap_policy *policy = device_policy(device);
    if (policy && policy->footprint_given)
        return &policy->footprint;
    if (!__atomic_load_n(&device->seen, __ATOMIC_ACQUIRE))
        return NULL;
    *copy = (struct overlap_footprint){0}; /* the driver tells neither barriers nor scalar registers */
    copy->threads = __atomic_load_n(&device->communication.threads, __ATOMIC_RELAXED);
    copy->registers = __atomic_load_n(&device->communication.registers, __ATOMIC_RELAXED);
    copy->static_shared = __atomic_load_n(&device->communication.static_shared, __ATOMIC_RELAXED);
    copy->dynamic_shared = __atomic_load_n(&device->communication.dynamic_shared, __ATOMIC_RELAXED);
    return copy;
}
