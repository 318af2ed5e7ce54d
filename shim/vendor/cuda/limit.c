/* The limit of dynamic shared memory of kernels (attribute 8), which we raise and the program believes to be its own.
 *
 * Two numbers for a kernel on a device: what the program believes, and what we need. The driver is only ever told the
 * larger of the two, so a launch that it has taken once it takes again, whatever the program sets meanwhile; and the
 * program reads back what it has set, and is refused what it would have been refused. A CUkernel and the functions made
 * from it share their attributes, by device.
 */
#include "cuda.h"

enum { ENTRY_BITS = 14, PROBES = 64 };
#define ENTRIES (1U << ENTRY_BITS)
#define WHICH CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES

static struct entry {
    uint64_t key;    /* handle, and for a CUkernel its device above; 0: free */
    uint64_t limits; /* believed << 32 | needed; 0: nothing known, so nothing raised */
} entries[ENTRIES];

static uint64_t pack(int believed, uint32_t needed) {
    return (uint64_t)(uint32_t)believed << 32 | needed;
}
static int believed_in(uint64_t limits) {
    return (int)(limits >> 32);
}
static uint32_t needed_in(uint64_t limits) {
    return (uint32_t)limits;
}

static uint64_t key_for(uint64_t value, int device) {
    return value | (uint64_t)(device + 1) << OVERLAP_CACHE_HANDLE_BITS;
}

/* device: of a CUkernel; a function knows its own. */
static uint64_t key_of_handle(const struct handle *handle, int device) {
    uint64_t kernel = __atomic_load_n(&handle->kernel, __ATOMIC_RELAXED);
    if (kernel)
        return key_for(kernel, __atomic_load_n(&handle->device, __ATOMIC_RELAXED));
    return handle->kind == HANDLE_KERNEL ? key_for(handle->value, device) : handle->value;
}

/* NULL: not known, and if it should be taken, there is no more room. */
static struct entry *entry_of(uint64_t key, bool take) {
    uint64_t hash = key * UINT64_C(0x9E3779B97F4A7C15) >> (64 - ENTRY_BITS);
    for (uint32_t probe = 0; probe < PROBES; probe++) {
        struct entry *entry = &entries[(hash + probe) & (ENTRIES - 1)];
        uint64_t owner = __atomic_load_n(&entry->key, __ATOMIC_RELAXED);
        if (owner == 0 && take)
            __atomic_compare_exchange_n(&entry->key, &owner, key, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        if (owner == key || (owner == 0 && take))
            return entry;
        if (owner == 0)
            return NULL;
    }
    return NULL;
}

static uint64_t limits_of(const struct handle *handle, int device) {
    struct entry *entry = handle ? entry_of(key_of_handle(handle, device), false) : NULL;
    return entry ? __atomic_load_n(&entry->limits, __ATOMIC_ACQUIRE) : 0;
}

/* Always to all that a block may have: two threads that need different sizes then tell the driver the same. Told again
 * for every launch that asks: another thread may have noted it and not told yet, or its context may be a new one. */
bool limit_raise(struct handle *handle, uint32_t dynamic) {
    struct device *device = device_current();
    int limit = 0, fixed = 0;
    if (!device || handle_get(handle, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, device->ordinal, &fixed) != CUDA_SUCCESS ||
        handle_get(handle, WHICH, device->ordinal, &limit) != CUDA_SUCCESS || limit < 0 || fixed < 0)
        return false;
    uint32_t most = device->gpu.shared_optin > (uint32_t)fixed ? device->gpu.shared_optin - (uint32_t)fixed : 0;
    struct entry *entry = most >= dynamic ? entry_of(key_of_handle(handle, device->ordinal), true) : NULL;
    if (!entry)
        return false;
    /* Noted before the driver is told: a program that sets the limit from now on cannot take it back. */
    uint64_t none = 0;
    __atomic_compare_exchange_n(&entry->limits, &none, pack(limit, most), false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return handle_set(handle, WHICH, device->ordinal, (int)most) == CUDA_SUCCESS;
}

int limit_for_driver(const void *value, int device, int attribute, int asked) {
    uint64_t limits = attribute == WHICH ? limits_of(handle_find(value), device) : 0;
    return limits && asked >= 0 && (uint32_t)asked < needed_in(limits) ? (int)needed_in(limits) : asked;
}

void limit_believe(const void *value, int device, int attribute, int set) {
    struct handle *handle = attribute == WHICH ? handle_find(value) : NULL;
    struct entry *entry = handle ? entry_of(key_of_handle(handle, device), false) : NULL;
    uint64_t limits = entry ? __atomic_load_n(&entry->limits, __ATOMIC_ACQUIRE) : 0;
    while (limits && !__atomic_compare_exchange_n(&entry->limits, &limits, pack(set, needed_in(limits)), false,
                                                  __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        ;
    /* What was launched may be beyond it now. Larger ones were not kept while they were beyond it. */
    if (limits && set < believed_in(limits))
        handle_doubted(handle);
}

void limit_answer(const void *value, int device, int attribute, int *answer) {
    uint64_t limits = attribute == WHICH ? limits_of(handle_find(value), device) : 0;
    if (limits)
        *answer = believed_in(limits);
}

uint32_t limit_beyond(struct handle *handle, int device, uint32_t dynamic) {
    uint64_t limits = limits_of(handle, device);
    int believed = believed_in(limits);
    if (!limits && handle_get(handle, WHICH, device, &believed) != CUDA_SUCCESS)
        return 0;
    if (believed < 0 || dynamic <= (uint32_t)believed)
        return 0;
    return dynamic <= needed_in(limits) ? OVERLAP_WORD_SIZE_MASK : dynamic;
}

void limit_forget(uint64_t value) {
    for (int device = -1; device < OVERLAP_DEVICES; device++) {
        struct entry *entry = entry_of(key_for(value, device), false);
        if (entry)
            __atomic_store_n(&entry->limits, 0, __ATOMIC_RELEASE);
    }
}
