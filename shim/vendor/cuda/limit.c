/* The limit of dynamic shared memory of kernels (attribute 8). We raise it without the program seeing that.
 *
 * Each handle has two numbers: the limit that the program has set (the app limit), and the limit that we need. The
 * driver always gets the larger one, so a launch that it has accepted once stays accepted whatever the program sets
 * later. The program reads back the limit that it has set, and launches above that are refused as without us.
 *
 * A CUkernel has one limit for each device. A function obtained from it has the same limit until the program sets one
 * for the function itself. That one then takes precedence over the CUkernel's (cuda.h 13.0 at cuKernelSetAttribute),
 * for launches of the CUkernel, too (observed with driver 580). So we raise the CUkernel's limit, and the function's
 * only if the program has set it: a limit that the program sets for one of the two then reaches the other as it would
 * without us.
 */
#include "../../core/core.h"
#include "../../core/slots.h"
#include "../common/device.h"
#include "../common/handle.h"
#include "../common/state.h"
#include "cuda.h"

#define WHICH CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES

/* An entry of the table: app limit, KNOWN, needed limit (0: not raised). No entry: neither the program nor we have set
 * a limit. The key is handle_born(), with the device in the top bits for a CUkernel. 23 bits suffice for a size: no
 * block has 8 MiB. */
#define APP_LIMIT_SHIFT 24
#define MOST ((UINT64_C(1) << APP_LIMIT_SHIFT) - 1)
#define KNOWN (UINT64_C(1) << 23)

static uint64_t pack(int app_limit, uint32_t needed) {
    return ((uint64_t)(uint32_t)app_limit & MOST) << APP_LIMIT_SHIFT | KNOWN | needed;
}
static int app_limit_in(uint64_t limits) {
    return (int)(limits >> APP_LIMIT_SHIFT);
}
static uint32_t needed_in(uint64_t limits) {
    return (uint32_t)(limits & (KNOWN - 1));
}

static uint64_t key_for(uint32_t born, int device) {
    return born | (uint64_t)(device + 1) << OVERLAP_CACHE_HANDLE_BITS;
}

/* device: used for a CUkernel only, because a function belongs to one device. */
static uint64_t key_of_handle(const struct handle *handle, int device) {
    return key_for(handle_born(handle), handle_kind(handle) == HANDLE_KERNEL ? device : NO_DEVICE);
}

static uint64_t limits_of(const struct handle *handle, int device) {
    return handle ? state_get(STATE_LIMITS, key_of_handle(handle, device)) : 0;
}

/* Does the function have a limit of its own? True if it was obtained from no CUkernel, or if the program has set one
 * for it. */
static bool is_own(const struct handle *function, int device) {
    return !handle_origin(function) || limits_of(function, device);
}

/* Returns the form of the kernel whose limit applies to launches of this one. */
static struct handle *effective(struct handle *handle, int device) {
    if (handle_kind(handle) != HANDLE_KERNEL)
        return is_own(handle, device) ? handle : handle_origin(handle);
    struct handle *function = cuda_function_of(handle);
    return function && is_own(function, device) ? function : handle;
}

/* Returns the device of a function, whichever device is current; for a CUkernel the given one. */
static int device_for(const struct handle *handle, int device) {
    const int own = handle_device(handle);
    return handle_kind(handle) == HANDLE_KERNEL || own == NO_DEVICE ? device : own;
}

/* Sets *app_limit to the limit that the program has set. False: the driver reports that limit, because we have not
 * changed it. */
static bool app_limit_of(struct handle *handle, int device, int *app_limit) {
    if (handle_kind(handle) != HANDLE_KERNEL && !is_own(handle, device)) {
        device = handle_device(handle);
        handle = handle_origin(handle);
    }
    const uint64_t limits = limits_of(handle, device);
    *app_limit = needed_in(limits) ? app_limit_in(limits) : *app_limit;
    return needed_in(limits);
}

static uint32_t any_raised; /* 1: some limit of this process was raised */
bool limit_any_raised(void) {
    return OVERLAP_RELAXED(any_raised);
}

static bool raise_to(struct handle *handle, int device, uint32_t most) {
    int limit = 0;
    __atomic_store_n(&any_raised, 1, __ATOMIC_RELAXED);
    const uint64_t key = key_of_handle(handle, device);
    if (handle_get(handle, WHICH, device, &limit) != CUDA_SUCCESS || limit < 0)
        return false;
    /* Record first, then tell the driver: if the program sets the limit in between, the larger one still wins. */
    uint64_t limits = state_get(STATE_LIMITS, key);
    while (!state_swap(STATE_LIMITS, key, &limits, pack(needed_in(limits) ? app_limit_in(limits) : limit, most)))
        if (limits == OVERLAP_SLOTS_FULL)
            return false;
    return handle_set(handle, WHICH, device, (int)most) == CUDA_SUCCESS;
}

/* Raises to the maximum of a block, so that two threads that need different sizes set the same limit. Calls the driver
 * every time, because another thread may have recorded the limit but not set it yet, or the context may be new. */
bool limit_raise(struct handle *handle, uint32_t dynamic) {
    struct device *device = device_current(VENDOR_CUDA);
    int fixed = 0;
    if (!device || handle_get(handle, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, device->ordinal, &fixed) != CUDA_SUCCESS ||
        fixed < 0)
        return false;
    uint32_t most = device->gpu.shared_optin > (uint32_t)fixed ? device->gpu.shared_optin - (uint32_t)fixed : 0;
    struct handle *origin = handle_origin(handle), *kernel = origin ? origin : handle;
    struct handle *counts = effective(handle, device->ordinal);
    return most >= dynamic && raise_to(kernel, device->ordinal, most) &&
           (counts == kernel || raise_to(counts, device->ordinal, most));
}

/* Returns the limit that we need for this handle. For a function it includes the CUkernel's, because the function's own
 * limit then applies to launches of both. */
static uint32_t needed_of(const struct handle *handle, int device) {
    const struct handle *origin = handle_origin(handle);
    const uint32_t own = needed_in(limits_of(handle, device)),
                   tracked = origin ? needed_in(limits_of(origin, handle_device(handle))) : 0;
    return own > tracked ? own : tracked;
}

int limit_for_driver(const void *value, int device, int attribute, int asked) {
    const struct handle *handle = attribute == WHICH ? handle_find(value) : NULL;
    if (!handle || asked < 0)
        return asked;
    const uint32_t needed = needed_of(handle, device);
    return (uint32_t)asked < needed ? (int)needed : asked;
}

void limit_program_sets(const void *value, int device, int attribute, int set) {
    struct handle *handle = attribute == WHICH ? handle_find(value) : NULL;
    if (!handle)
        return;
    /* Record it even if we have not raised the limit, so that setting the same limit repeatedly invalidates nothing. */
    const uint64_t key = key_of_handle(handle, device);
    uint64_t before = state_get(STATE_LIMITS, key);
    while (!state_swap(STATE_LIMITS, key, &before, pack(set, needed_of(handle, device))) &&
           before != OVERLAP_SLOTS_FULL)
        ;
    /* Cached launches may exceed a lower limit. A higher limit needs nothing: launches above the old one were not
     * cached. */
    if (!before || set < app_limit_in(before))
        handle_invalidate(handle);
}

void limit_answer(const void *value, int device, int attribute, int *answer) {
    struct handle *handle = attribute == WHICH ? handle_find(value) : NULL;
    if (handle)
        app_limit_of(handle, device, answer);
}

uint32_t limit_own(const void *value, int device) {
    struct handle *handle = handle_find(value);
    int app_limit = 0;
    device = handle ? device_for(handle, device) : device;
    return handle && app_limit_of(effective(handle, device), device, &app_limit) && app_limit >= 0 ? (uint32_t)app_limit
                                                                                                   : UINT32_MAX;
}

uint32_t cuda_over_app_limit(struct handle *handle, int device, uint32_t dynamic) {
    device = device_for(handle, device);
    struct handle *counts = effective(handle, device);
    int app_limit = 0;
    if (handle_get(counts, WHICH, device, &app_limit) != CUDA_SUCCESS)
        return 0;
    const bool raised = app_limit_of(counts, device, &app_limit);
    if (app_limit < 0 || dynamic <= (uint32_t)app_limit)
        return 0;
    return raised && dynamic < OVERLAP_WORD_SIZE_MASK ? OVERLAP_WORD_SIZE_MASK : dynamic;
}

void limit_forget(uint32_t born) {
    for (int device = NO_DEVICE; device < OVERLAP_DEVICES; device++)
        state_put(STATE_LIMITS, key_for(born, device), 0);
}
