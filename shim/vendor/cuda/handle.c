/* Kernels by handle. A CUfunction and a CUkernel look alike to a launch, but only the call that made one tells which it
 * is, and only the matching functions may be asked about it. Entries are found by an open-addressed table without
 * locks; an entry is never moved or freed, only declared dead when its module goes.
 */
#include <string.h>

#include "cuda.h"

#define SLOT_BITS 18
#define SLOTS (1U << SLOT_BITS)
#define NAME_SLOTS (1U << 15)
enum { PROBES = 64, NAME_LIMIT = 4096, NAME_ARENA = 8 << 20 };

#define LOAD(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

static struct handle slots[SLOTS];
static uint32_t order[SLOTS], used; /* slots in the order of their first use, so that an unload need not scan all */
static char names[NAME_ARENA];
static uint64_t names_used;
static uint32_t kept[NAME_SLOTS]; /* where the names are, + 1, by their hash: contexts made again bring the same ones */

/* A dead slot is taken over when no free one is near: contexts and modules come and go, addresses seldom repeat. */
static struct handle *slot_of(uint64_t value, bool take) {
    uint64_t hash = (value >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> (64 - SLOT_BITS);
    struct handle *dead = NULL;
    for (uint64_t probe = 0; probe < PROBES; probe++) {
        struct handle *slot = &slots[(uint32_t)(hash + probe) & (SLOTS - 1)];
        uint64_t owner = __atomic_load_n(&slot->value, __ATOMIC_ACQUIRE);
        if (owner == 0 && take && !dead &&
            __atomic_compare_exchange_n(&slot->value, &owner, value, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            uint32_t position = __atomic_fetch_add(&used, 1, __ATOMIC_RELAXED);
            __atomic_store_n(&order[position], (uint32_t)(slot - slots) + 1, __ATOMIC_RELEASE);
            return slot;
        }
        if (owner == value)
            return slot;
        if (owner == 0)
            break;
        if (!dead && __atomic_load_n(&slot->kind, __ATOMIC_ACQUIRE) == 0)
            dead = slot;
    }
    uint64_t before = take && dead ? __atomic_load_n(&dead->value, __ATOMIC_RELAXED) : 0;
    /* Two that take it over at once: one gets it, the other's kernel stays unknown and is left alone. */
    return before &&
                   __atomic_compare_exchange_n(&dead->value, &before, value, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)
               ? dead
               : NULL;
}

static uint32_t hash_of(const char *name, size_t length) {
    uint32_t hash = 2166136261U;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)name[i]) * 16777619U;
    return hash;
}

/* A copy that stays, or NULL where there is no more room (the driver is asked then). */
static const char *keep_name(const char *name) {
    const size_t length = strnlen(name, NAME_LIMIT);
    uint32_t *place = NULL, none = 0;
    for (uint32_t probe = 0, hash = hash_of(name, length); probe < PROBES; probe++) {
        uint32_t *slot = &kept[(hash + probe) & (NAME_SLOTS - 1)];
        uint32_t at = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
        if (at == 0) {
            place = slot;
            break;
        }
        if (strncmp(names + at - 1, name, length) == 0 && names[at - 1 + length] == 0)
            return names + at - 1;
    }
    uint64_t at = __atomic_load_n(&names_used, __ATOMIC_RELAXED);
    do
        if (at + length + 1 > NAME_ARENA)
            return NULL;
    while (!__atomic_compare_exchange_n(&names_used, &at, at + length + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    memcpy(names + at, name, length);
    names[at + length] = 0;
    if (place) /* somebody else's name there: ours is kept once more next time, no harm */
        __atomic_compare_exchange_n(place, &none, (uint32_t)at + 1, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    return names + at;
}

void handle_learn(void *value, enum handle_kind kind, void *owner, const char *name, void *kernel) {
    struct handle *handle = value ? slot_of((uint64_t)(uintptr_t)value, true) : NULL;
    if (!handle)
        return;
    CUcontext context = NULL;
    CUdevice device = NO_DEVICE;
    if (kind == HANDLE_FUNCTION && driver_ready() && driver.cuCtxGetCurrent && driver.cuCtxGetDevice) {
        driver.cuCtxGetCurrent(&context);
        driver.cuCtxGetDevice(&device);
    }
    const char *known = __atomic_load_n(&handle->name, __ATOMIC_ACQUIRE);
    bool same_name = name ? known && strncmp(known, name, NAME_LIMIT) == 0 : true;
    if (__atomic_load_n(&handle->kind, __ATOMIC_ACQUIRE) == (uint32_t)kind &&
        LOAD(handle->owner) == (uint64_t)(uintptr_t)owner && LOAD(handle->context) == (uint64_t)(uintptr_t)context &&
        same_name)
        return; /* asked for again */
    overlap_cache_forget(&launch_cache, handle->value);
    limit_forget(handle->value);
    size_forget(handle);
    __atomic_store_n(&handle->owner, (uint64_t)(uintptr_t)owner, __ATOMIC_RELAXED);
    __atomic_store_n(&handle->context, (uint64_t)(uintptr_t)context, __ATOMIC_RELAXED);
    __atomic_store_n(&handle->kernel, (uint64_t)(uintptr_t)kernel, __ATOMIC_RELAXED);
    __atomic_store_n(&handle->device, device, __ATOMIC_RELAXED);
    __atomic_store_n(&handle->marks, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&handle->cluster, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&handle->carveout_ours, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&handle->carveout_program, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&handle->carveout_small, 0, __ATOMIC_RELAXED);
    if (!name || !same_name)
        __atomic_store_n(&handle->name, name ? keep_name(name) : NULL, __ATOMIC_RELEASE);
    __atomic_store_n(&handle->kind, (uint32_t)kind, __ATOMIC_RELEASE);
}

struct handle *handle_find(const void *value) {
    struct handle *handle = value ? slot_of((uint64_t)(uintptr_t)value, false) : NULL;
    return handle && __atomic_load_n(&handle->kind, __ATOMIC_ACQUIRE) ? handle : NULL;
}

/* The i-th handle ever learned, or NULL. */
static struct handle *learned(uint32_t i) {
    uint32_t index = i < SLOTS ? __atomic_load_n(&order[i], __ATOMIC_ACQUIRE) : 0;
    return index ? &slots[index - 1] : NULL;
}

static void forget(struct handle *handle) {
    __atomic_store_n(&handle->kind, 0, __ATOMIC_RELEASE);
    overlap_cache_forget(&launch_cache, handle->value);
}

void handle_forget_owner(const void *owner) {
    uint32_t count = __atomic_load_n(&used, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++) {
        struct handle *handle = learned(i);
        if (!handle || LOAD(handle->owner) != (uint64_t)(uintptr_t)owner)
            continue;
        const uint32_t kind = LOAD(handle->kind);
        const void *owned = (const void *)(uintptr_t)handle->value;
        forget(handle);
        if (kind == HANDLE_MODULE) /* deeper goes no owner: a module's are functions */
            handle_forget_owner(owned);
        else if (kind == HANDLE_CONTEXT)
            handle_forget_context(owned, NO_DEVICE);
    }
}

void handle_forget_context(const void *context, int device) {
    uint32_t count = __atomic_load_n(&used, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++) {
        struct handle *handle = learned(i);
        if (!handle)
            continue;
        if (LOAD(handle->kind) == HANDLE_KERNEL) /* stays, but what the driver was told about it may be gone */
            overlap_cache_forget(&launch_cache, handle->value);
        else if (context ? LOAD(handle->context) == (uint64_t)(uintptr_t)context : LOAD(handle->device) == device)
            forget(handle);
    }
}

int capture_relax(void) {
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    return driver.cuThreadExchangeStreamCaptureMode && driver.cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS
               ? mode
               : -1;
}

void capture_restore(int mode) {
    if (mode >= 0)
        driver.cuThreadExchangeStreamCaptureMode(&mode);
}

const char *handle_name(struct handle *handle) {
    const char *known = __atomic_load_n(&handle->name, __ATOMIC_ACQUIRE);
    if (known || !driver_ready())
        return known;
    const char *answer = NULL;
    int mode = capture_relax();
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;
    if (LOAD(handle->kind) == HANDLE_FUNCTION && driver.cuFuncGetName)
        result = driver.cuFuncGetName(&answer, (CUfunction)(uintptr_t)handle->value);
    else if (LOAD(handle->kind) == HANDLE_KERNEL && driver.cuKernelGetName)
        result = driver.cuKernelGetName(&answer, (CUkernel)(uintptr_t)handle->value);
    capture_restore(mode);
    if (result != CUDA_SUCCESS || !answer)
        return NULL;
    known = keep_name(answer);
    __atomic_store_n(&handle->name, known, __ATOMIC_RELEASE);
    return known;
}

CUresult handle_get(const struct handle *handle, int attribute, int device, int *value) {
    type_cuFuncGetAttribute *function_get = (type_cuFuncGetAttribute *)real_own(HOOK_cuFuncGetAttribute);
    type_cuKernelGetAttribute *kernel_get = (type_cuKernelGetAttribute *)real_own(HOOK_cuKernelGetAttribute);
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;
    int mode = capture_relax();
    if (LOAD(handle->kind) == HANDLE_FUNCTION && function_get)
        result = function_get(value, attribute, (CUfunction)(uintptr_t)handle->value);
    else if (LOAD(handle->kind) == HANDLE_KERNEL && kernel_get)
        result = kernel_get(value, attribute, (CUkernel)(uintptr_t)handle->value, device);
    capture_restore(mode);
    return result;
}

CUresult handle_set(const struct handle *handle, int attribute, int device, int value) {
    type_cuFuncSetAttribute *function_set = (type_cuFuncSetAttribute *)real_own(HOOK_cuFuncSetAttribute);
    type_cuKernelSetAttribute *kernel_set = (type_cuKernelSetAttribute *)real_own(HOOK_cuKernelSetAttribute);
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;
    int mode = capture_relax();
    if (LOAD(handle->kind) == HANDLE_FUNCTION && function_set)
        result = function_set((CUfunction)(uintptr_t)handle->value, attribute, value);
    else if (LOAD(handle->kind) == HANDLE_KERNEL && kernel_set)
        result = kernel_set(attribute, value, (CUkernel)(uintptr_t)handle->value, device);
    capture_restore(mode);
    return result;
}

struct handle *handle_origin(const struct handle *handle) {
    uint64_t kernel = LOAD(handle->kernel);
    return kernel ? handle_find((const void *)(uintptr_t)kernel) : NULL;
}

bool handle_is_marked(const struct handle *handle, enum handle_mark mark) {
    const struct handle *origin = handle_origin(handle);
    return (LOAD(handle->marks) | (origin ? LOAD(origin->marks) : 0)) & (uint32_t)mark;
}

void handle_mark(struct handle *handle, enum handle_mark mark) {
    struct handle *origin = handle_origin(handle);
    __atomic_fetch_or(&handle->marks, (uint32_t)mark, __ATOMIC_RELAXED);
    if (origin)
        __atomic_fetch_or(&origin->marks, (uint32_t)mark, __ATOMIC_RELAXED);
    handle_doubted(handle);
}

void handle_doubted(const struct handle *handle) {
    facts_changed();
    /* All forms of a kernel share their attributes. */
    uint64_t kernel = LOAD(handle->kind) == HANDLE_KERNEL ? handle->value : LOAD(handle->kernel);
    overlap_cache_forget(&launch_cache, handle->value);
    if (!kernel)
        return;
    overlap_cache_forget(&launch_cache, kernel);
    uint32_t count = __atomic_load_n(&used, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++) {
        struct handle *other = learned(i);
        if (other && LOAD(other->kernel) == kernel)
            overlap_cache_forget(&launch_cache, other->value);
    }
}
