/* The preferred shared-memory carve-out of a kernel (attribute 9). With the first launch of a kernel with our size we
 * ask for the largest, unless the program has a preference of its own, for the function, the kernel or the context. The
 * reason: a multiprocessor changes its configuration only while it is idle, so next to blocks launched with the default
 * there is no room, whatever the arithmetic says (H200: tools/gpu/README.md). The program reads back what it set.
 *
 * A function inherits the setting of its CUkernel until it gets its own, so ours is set on the CUkernel.
 */
#include "../core/core.h"
#include "../gpu/handle.h"
#include "../gpu/table.h"
#include "cuda.h"

#define WHICH CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
enum { BY_DEFAULT = -1 };

/* The form whose setting applies to launches of this one: a function's own, or that of its CUkernel. */
static struct handle *holder_of(struct handle *function) {
    struct handle *origin = handle_origin(function);
    return origin && !setting_read(&function->carveout).has_own ? origin : function;
}
static struct handle *effective(struct handle *handle) {
    struct handle *function = handle_kind(handle) == HANDLE_KERNEL ? cuda_function_of(handle) : handle;
    return function ? holder_of(function) : handle;
}

/* True if the program prefers cache to shared memory for kernels without a preference of their own. */
static bool context_prefers_cache(void) {
    int config = CU_FUNC_CACHE_PREFER_NONE;
    const bool entered = cuda_enter_launch();
    const bool known = driver.cuCtxGetCacheConfig && driver.cuCtxGetCacheConfig(&config) == CUDA_SUCCESS;
    if (entered)
        cuda_leave_launch();
    return known && (config == CU_FUNC_CACHE_PREFER_L1 || config == CU_FUNC_CACHE_PREFER_EQUAL);
}

bool cuda_prefers_cache(struct handle *handle, int device) {
    const struct handle *counts = effective(handle);
    const struct setting carveout = setting_read(&counts->carveout);
    const uint32_t bit = setting_bit(counts, device);
    int preferred = BY_DEFAULT;
    if (carveout.ours & bit)
        return false;
    if (carveout.has_own & bit)
        return setting_value(&carveout, bit) != CU_SHAREDMEM_CARVEOUT_MAX_SHARED;
    if (handle_get(counts, WHICH, device, &preferred) != CUDA_SUCCESS)
        return false;
    return preferred == BY_DEFAULT ? context_prefers_cache() : preferred != CU_SHAREDMEM_CARVEOUT_MAX_SHARED;
}

void carveout_raise(struct handle *handle, int device) {
    struct handle *const form = effective(handle);
    struct setting *const carveout = &form->carveout;
    const uint32_t bit = setting_bit(form, device);
    int preferred = BY_DEFAULT;
    if (OVERLAP_RELAXED(carveout->ours) & bit || handle_get(form, WHICH, device, &preferred) != CUDA_SUCCESS ||
        preferred != BY_DEFAULT || context_prefers_cache() || !lock_take())
        return;
    /* Record it first, so that a read by the program meanwhile does not return our value. */
    const bool free = !(carveout->has_own & bit);
    if (free)
        __atomic_store_n(&carveout->ours, carveout->ours | bit, __ATOMIC_RELAXED);
    lock_leave();
    if (free)
        handle_set(form, WHICH, device, CU_SHAREDMEM_CARVEOUT_MAX_SHARED);
    const struct setting now = setting_read(carveout);
    if (free && !(now.ours & bit)) /* the program has set its own meanwhile, and ours may have come after it */
        handle_set(form, WHICH, device, setting_value(&now, bit));
}

/* Of one form, on every device. True: it was not so before. */
static bool leave(struct handle *form) {
    if (handle_is_ending(form) || !lock_take()) /* the driver may have freed it */
        return false;
    const struct setting before = form->carveout;
    __atomic_store_n(&form->carveout.ours, 0, __ATOMIC_RELAXED);
    setting_own(&form->carveout, UINT32_MAX, BY_DEFAULT);
    lock_leave();
    for (int device = 0; device < OVERLAP_DEVICES; device++)
        if (before.ours >> device & 1)
            handle_set(form, WHICH, device, BY_DEFAULT);
    return before.has_own != UINT32_MAX;
}

bool carveout_program_sets(struct handle *handle, int device, int set) {
    const uint32_t bit = setting_bit(handle, device);
    struct setting *const carveout = &handle->carveout;
    if (!lock_take())
        return true;
    const bool was_ours = carveout->ours & bit,
               other = !(carveout->has_own & bit) || setting_value(carveout, bit) != set;
    __atomic_store_n(&carveout->ours, carveout->ours & ~bit, __ATOMIC_RELAXED);
    setting_own(carveout, bit, set);
    lock_leave();
    if (other) /* communication may fit now, or no longer */
        handle_invalidate(handle);
    return !was_ours;
}

bool carveout_leave(struct handle *handle) {
    struct handle *const origin = handle_origin(handle);
    return (int)leave(handle) | (origin && leave(origin));
}

void carveout_answer(struct handle *handle, int device, int *answer) {
    const struct handle *form = holder_of(handle);
    if (setting_read(&form->carveout).ours & setting_bit(form, form == handle ? device : handle_device(handle)))
        *answer = BY_DEFAULT;
}
