/* The limit of dynamic shared memory of kernels (attribute 8). It is raised to the maximum of a block before the first
 * launch of a kernel with our size, and never lowered: a launch that the driver has accepted once stays accepted. The
 * program reads back its own limit, and launches above that are refused as without us.
 *
 * A function that was obtained from a CUkernel has the CUkernel's limit until the program sets one for the function,
 * which then applies to launches of both, whichever was set last (cuda.h 13.0 at cuKernelSetAttribute; seen on driver
 * 580). So the CUkernel's limit is raised, and the function's only if the program has set it.
 */
#include "../core/core.h"
#include "../gpu/device.h"
#include "../gpu/handle.h"
#include "../gpu/table.h"
#include "../gpu/streams.h"
#include "cuda.h"

#define WHICH CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES

/* The form whose limit a function has: itself, or its CUkernel. Sets the device of that limit. */
static struct handle *holder_of(struct handle *handle, int *device) {
    struct handle *origin = handle_origin(handle);
    if (!origin || setting_read(&handle->limit).has_own)
        return handle;
    *device = handle_device(handle) == NO_DEVICE ? *device : handle_device(handle);
    return origin;
}

/* The form whose limit applies to launches of this one on the device. */
static struct handle *effective(struct handle *handle, int *device) {
    struct handle *function = handle_kind(handle) == HANDLE_KERNEL ? cuda_function_of(handle) : handle;
    return function ? holder_of(function, device) : handle;
}

/* The program's limit if the driver has ours instead; else -1. */
static int hidden(const struct handle *form, int device) {
    const struct setting limit = setting_read(&form->limit);
    const uint32_t bit = setting_bit(form, device);
    return limit.ours & limit.has_own & bit ? setting_value(&limit, bit) : -1;
}

/* The largest limit of a form on a device: what a block has there besides the form's static memory. 0: unknown. */
static int most_of(struct handle *form, int ordinal) {
    const struct device *const device = device_get(VENDOR_CUDA, ordinal);
    int fixed = (int)OVERLAP_RELAXED(form->limit.fixed) - 1;
    if (fixed < 0 && handle_get(form, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, ordinal, &fixed) == CUDA_SUCCESS &&
        fixed >= 0)
        __atomic_store_n(&form->limit.fixed, (uint32_t)fixed + 1, __ATOMIC_RELAXED);
    return device && fixed >= 0 ? (int)device->gpu.shared_optin - fixed : 0;
}

/* Records that the driver gets ours, before it does: if the program sets the limit meanwhile, the larger one wins.
 * now: the driver's. */
static bool take(struct setting *limit, uint32_t bit, int now) {
    if (!lock_take())
        return false;
    setting_own(limit, bit, limit->has_own & bit ? setting_value(limit, bit) : now);
    __atomic_store_n(&limit->ours, limit->ours | bit, __ATOMIC_RELAXED);
    lock_leave();
    return true;
}

/* Tells the driver at every launch that it has not accepted yet: another thread may have recorded the limit but not
 * told it yet, or the context may be new. */
static bool raise_to(struct handle *form, int device, int most) {
    const uint32_t bit = setting_bit(form, device);
    int now = 0;
    return (OVERLAP_RELAXED(form->limit.ours) & bit ||
            (handle_get(form, WHICH, device, &now) == CUDA_SUCCESS && now >= 0 && take(&form->limit, bit, now))) &&
           handle_set(form, WHICH, device, most) == CUDA_SUCCESS;
}

bool limit_raise(struct handle *handle, const struct device *device, uint32_t dynamic) {
    struct handle *origin = handle_origin(handle), *kernel = origin ? origin : handle;
    int ordinal = device->ordinal;
    struct handle *counts = effective(handle, &ordinal);
    const int most = most_of(handle, ordinal);
    return most >= (int)dynamic && raise_to(kernel, ordinal, most) &&
           (counts == kernel || raise_to(counts, ordinal, most));
}

static int ours_of(struct handle *form, int device) {
    const struct setting limit = setting_read(&form->limit);
    const int its = handle_device(form) == NO_DEVICE ? current_ordinal(VENDOR_CUDA) : handle_device(form);
    return limit.ours & setting_bit(form, device) ? most_of(form, handle_is(form, HANDLE_KERNEL) ? device : its) : 0;
}

/* A function's own limit applies to launches of its CUkernel, too, so it is as large as that one's. */
int limit_for_driver(struct handle *handle, int device, int asked) {
    struct handle *const origin = handle_origin(handle);
    const int own = ours_of(handle, device), kernels = origin ? ours_of(origin, handle_device(handle)) : 0;
    const int ours = own > kernels ? own : kernels;
    return asked < 0 || asked > ours ? asked : ours;
}

void limit_program_sets(struct handle *handle, int device, int set) {
    const uint32_t bit = setting_bit(handle, device);
    const int ours = limit_for_driver(handle, device, 0);
    struct setting *const limit = &handle->limit;
    if (!lock_take())
        return;
    const bool lower = !(limit->has_own & bit) || set < setting_value(limit, bit);
    setting_own(limit, bit, set);
    if (ours) /* of a function it may be the CUkernel's so far */
        __atomic_store_n(&limit->ours, limit->ours | bit, __ATOMIC_RELAXED);
    lock_leave();
    /* Cached launches may exceed a lower limit; launches above the one of before were not cached. */
    if (lower)
        handle_invalidate(handle);
}

void limit_answer(struct handle *handle, int device, int *answer) {
    const struct handle *form = holder_of(handle, &device);
    const int own = hidden(form, device);
    *answer = own < 0 ? *answer : own;
}

uint32_t limit_own(struct handle *handle, int device) {
    const struct handle *counts = effective(handle, &device);
    const int own = hidden(counts, device);
    return own < 0 ? UINT32_MAX : (uint32_t)own;
}

/* Without a policy that shapes, no limit is raised and none is recorded: the driver refuses what is to be refused. */
uint32_t cuda_over_app_limit(struct handle *handle, int device, uint32_t dynamic) {
    if (!dynamic || !(streams_wanted() & STREAMS_SHAPES))
        return 0;
    const struct handle *counts = effective(handle, &device);
    int limit = hidden(counts, device);
    const bool raised = limit >= 0;
    if ((!raised && handle_get(counts, WHICH, device, &limit) != CUDA_SUCCESS) || limit < 0 ||
        dynamic <= (uint32_t)limit)
        return 0;
    return raised && dynamic < OVERLAP_LARGEST_SIZE ? OVERLAP_LARGEST_SIZE : dynamic;
}
