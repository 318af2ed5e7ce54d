/* From a launch that the cache does not know to its decision word: gathers the facts, asks core, keeps the answer. */
#include <string.h>

#include "launch.h"

/* Launches take no priority of their own: refused once. */
static uint32_t priority_refused;

/* Raised by one whenever communication's footprint grows: decisions made before are withdrawn. */
static uint32_t footprint_epoch;

/* Launches take a priority since CUDA 12.0. */
static bool priority_works(void) {
    static uint32_t said;
    int version = 0;
    if (__atomic_load_n(&priority_refused, __ATOMIC_RELAXED))
        return false;
    bool works = driver.cuDriverGetVersion && driver.cuDriverGetVersion(&version) == CUDA_SUCCESS && version >= 12000;
    if (!works && !__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
        overlap_say("communication is not raised: the driver is older than CUDA 12.0, where launches have no priority",
                    NULL, NULL);
    return works;
}

void facts_priority_refused(void) {
    __atomic_store_n(&priority_refused, 1, __ATOMIC_RELAXED);
    overlap_cache_forget_all(&launch_cache);
}

void library_of(uintptr_t site, char *name, size_t size) {
    struct overlap_object object;
    name[0] = 0;
    if (overlap_object_at(site, &object)) {
        strncpy(name, object.name, size - 1);
        name[size - 1] = 0;
    }
}

static uint64_t word_of(uint32_t reason, uint32_t dynamic, uint64_t flags) {
    return (dynamic & OVERLAP_WORD_SIZE_MASK) | (uint64_t)reason << OVERLAP_WORD_REASON_SHIFT | OVERLAP_WORD_VALID |
           flags;
}

static bool is_communication(const struct overlap_policy *policy, const char *kernel, const char *library) {
    if (overlap_is_communication_library(library) || (kernel && overlap_is_communication(kernel)))
        return true;
    if (!policy)
        return false;
    struct overlap_view view = overlap_table_view(overlap_armed()->table);
    return overlap_match_any(&view, policy->libraries, library) ||
           (kernel && overlap_match_kernel(&view, policy->kernels, kernel));
}

/* Asks the driver what one block takes. False: it does not tell; *later: it may when asked again. */
static bool read_footprint(struct handle *handle, const struct device *device, struct overlap_launch *launch,
                           bool *later) {
    int registers = 0, shared = 0;
    CUresult result = handle_get(handle, CU_FUNC_ATTRIBUTE_NUM_REGS, device->ordinal, &registers);
    if (result == CUDA_SUCCESS)
        result = handle_get(handle, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, device->ordinal, &shared);
    *later = result == CUDA_ERROR_FUNCTION_NOT_LOADED;
    if (result != CUDA_SUCCESS || registers < 0 || shared < 0)
        return false;
    /* Clusters may be compiled in (__cluster_dims__) and then need no launch attribute. */
    for (int which = CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH; which <= CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH;
         which++) {
        int size = 0;
        if (handle_get(handle, which, device->ordinal, &size) == CUDA_SUCCESS && size > 1)
            launch->flags |= OVERLAP_LAUNCH_CLUSTER;
    }
    launch->footprint.registers = (uint32_t)registers;
    launch->footprint.static_shared = (uint32_t)shared;
    launch->maximum_dynamic =
        device->gpu.shared_optin > (uint32_t)shared ? device->gpu.shared_optin - (uint32_t)shared : 0;
    return true;
}

/* Makes the decision and keeps it under `place`, the handle as the cache knows it. */
static uint64_t decide(const struct request *request, struct handle *handle, struct device *device, uint64_t place) {
    const struct overlap_settings *settings = overlap_armed();
    const struct overlap_policy *policy = device_policy(device);
    uint32_t epoch = __atomic_load_n(&footprint_epoch, __ATOMIC_ACQUIRE);
    char library[256];
    library_of(request->site, library, sizeof library);
    const char *kernel = handle ? handle_name(handle) : NULL;
    struct overlap_launch launch = {.blocks = blocks_of(request), .flags = request->flags};
    launch.footprint.threads = (uint32_t)threads_of(request);
    launch.footprint.dynamic_shared = request->config.sharedMemBytes;
    bool later = false;
    if (!handle || !kernel || !read_footprint(handle, device, &launch, &later))
        launch.flags |= OVERLAP_LAUNCH_UNKNOWN;
    if (handle && __atomic_load_n(&handle->refused, __ATOMIC_RELAXED))
        launch.flags |= OVERLAP_LAUNCH_REFUSED;
    uint64_t flags = settings->trace ? OVERLAP_WORD_TRACED : 0;
    if (is_communication(policy, kernel, library)) {
        launch.flags |= OVERLAP_LAUNCH_COMMUNICATION;
        flags |= OVERLAP_WORD_COMMUNICATION;
        int priority = 0;
        if (policy && device_priority(policy->priority, policy->priority_value, &priority) && priority_works())
            flags |= OVERLAP_WORD_RAISE | (uint64_t)(uint16_t)priority << OVERLAP_WORD_PRIORITY_SHIFT;
        if (!(launch.flags & OVERLAP_LAUNCH_UNKNOWN) && device_learn(device, kernel, &launch.footprint)) {
            __atomic_fetch_add(&footprint_epoch, 1, __ATOMIC_RELEASE);
            overlap_cache_forget_all(&launch_cache);
            epoch++;
        }
    }
    struct overlap_footprint copy;
    struct overlap_decision decision;
    overlap_decide(settings->table, device->policy, &device->gpu, kernel ? kernel : "", library, &launch,
                   device_communication(device, &copy), &decision);
    uint32_t beyond = handle ? limit_beyond(handle, device->ordinal, request->config.sharedMemBytes) : 0;
    if (beyond) {
        decision.reason = flags & OVERLAP_WORD_COMMUNICATION ? decision.reason : OVERLAP_REASON_cannot_launch;
        decision.dynamic_shared = beyond;
        flags |= OVERLAP_WORD_DIRECT; /* there is nothing to prove, and... */
        place = 0;                    /* ...the program may set another limit */
    }
    if (decision.dynamic_shared != request->config.sharedMemBytes)
        flags |= OVERLAP_WORD_CHANGED;
    else if (!(flags & (OVERLAP_WORD_COMMUNICATION | OVERLAP_WORD_TRACED)))
        flags |= OVERLAP_WORD_DIRECT;
    uint64_t word = word_of(decision.reason, decision.dynamic_shared, flags);
    uint64_t threads = threads_of(request);
    if (place && !later && overlap_cacheable(threads, request->config.sharedMemBytes)) {
        overlap_cache_keep(&launch_cache, place, key_of(request), decision.minimum_blocks, decision.maximum_blocks,
                           word);
        /* Communication grew while we decided by its old footprint. */
        if (epoch != __atomic_load_n(&footprint_epoch, __ATOMIC_ACQUIRE))
            overlap_cache_forget(&launch_cache, place);
    }
    return word;
}

uint64_t facts_word(const struct request *request, uint64_t *place) {
    uint64_t threads = threads_of(request), word = 0;
    struct handle *handle = handle_find(request->function);
    struct device *device = device_current();
    if (!device) {
        *place = 0;
        return word_of(OVERLAP_REASON_unknown_footprint, request->config.sharedMemBytes, 0);
    }
    if ((!handle || handle->kind == HANDLE_KERNEL) && !device_only_one()) {
        /* One CUkernel serves every device, so its answers are kept by device; likewise where we do not know. */
        *place = device->ordinal + 1 < OVERLAP_DEVICES ? *place | (uint64_t)(device->ordinal + 1) << DEVICE_SHIFT : 0;
        if (*place && overlap_cacheable(threads, request->config.sharedMemBytes))
            word = overlap_cache_find(&launch_cache, *place, key_of(request), blocks_of(request));
    }
    return word ? word : decide(request, handle, device, *place);
}
