/* The shared-memory carve-out that a kernel prefers (attribute 9). Kernels that communication is to share a
 * multiprocessor with ask for the largest: a multiprocessor changes its configuration only while it is idle, so beside
 * blocks that were launched with the default there is no room whatever the arithmetic says. Communication itself need not
 * ask, and asks only where the policy says so: it costs NCCL bandwidth (both measured on an H200: tools/gpu/results).
 * What the program has said itself counts more, and it reads back what it has set.
 *
 * Two bits of a handle for each device: `ours`, the driver has or may have our setting; `closed`, we set none any more.
 * Whoever sets both in the end tells the driver the program's value once more, so that it stays whatever came last.
 */
#include "cuda.h"

#define WHICH CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
enum { BY_DEFAULT = -1, LARGEST = 100 }; /* CU_SHAREDMEM_CARVEOUT_DEFAULT and _MAX_SHARED */

/* A CUkernel has a preference for each device, a function is of one anyway. */
static uint32_t bit_of(const struct handle *handle, int device) {
    return handle->kind == HANDLE_KERNEL ? UINT32_C(1) << (device & 31) : 1;
}

static bool has(const uint32_t *devices, uint32_t bit) {
    return __atomic_load_n(devices, __ATOMIC_ACQUIRE) & bit;
}

bool cuda_prefers_cache(const struct handle *handle, int device) {
    int preferred = BY_DEFAULT;
    return !has(&handle->carveout_ours, bit_of(handle, device)) &&
           handle_get(handle, WHICH, device, &preferred) == CUDA_SUCCESS && preferred >= 0 && preferred < LARGEST;
}

void cuda_prefer_shared(struct handle *handle, int device) {
    const uint32_t bit = bit_of(handle, device);
    int preferred = BY_DEFAULT;
    if (has(&handle->carveout_ours, bit) || has(&handle->carveout_closed, bit))
        return;
    if (handle_get(handle, WHICH, device, &preferred) != CUDA_SUCCESS || preferred != BY_DEFAULT) {
        __atomic_fetch_or(&handle->carveout_closed, bit, __ATOMIC_RELEASE);
        return;
    }
    /* Noted first: what the program asks meanwhile is answered as if we had not. */
    __atomic_fetch_or(&handle->carveout_ours, bit, __ATOMIC_SEQ_CST);
    if (handle_set(handle, WHICH, device, LARGEST) != CUDA_SUCCESS) {
        __atomic_fetch_or(&handle->carveout_closed, bit, __ATOMIC_RELEASE);
        __atomic_fetch_and(&handle->carveout_ours, ~bit, __ATOMIC_RELEASE);
    } else if (__atomic_load_n(&handle->carveout_closed, __ATOMIC_SEQ_CST) & bit &&
               handle_set(handle, WHICH, device, __atomic_load_n(&handle->carveout_asked, __ATOMIC_ACQUIRE)) ==
                   CUDA_SUCCESS)
        __atomic_fetch_and(&handle->carveout_ours, ~bit, __ATOMIC_RELEASE);
}

void carveout_withdraw(struct handle *handle) {
    __atomic_store_n(&handle->carveout_asked, BY_DEFAULT, __ATOMIC_RELEASE);
    __atomic_store_n(&handle->carveout_closed, UINT32_MAX, __ATOMIC_SEQ_CST);
    uint32_t ours = __atomic_exchange_n(&handle->carveout_ours, 0, __ATOMIC_SEQ_CST);
    for (int device = 0; ours; device++, ours >>= 1)
        if (ours & 1)
            handle_set(handle, WHICH, device, BY_DEFAULT);
}

void carveout_is_programs(const void *value, int device, int set) {
    struct handle *handle = armed_and_ready(VENDOR_CUDA) ? handle_find(value) : NULL;
    if (!handle)
        return;
    const uint32_t bit = bit_of(handle, device);
    const bool small = set >= 0 && set < LARGEST;
    __atomic_store_n(&handle->carveout_asked, set, __ATOMIC_RELEASE);
    __atomic_fetch_or(&handle->carveout_closed, bit, __ATOMIC_SEQ_CST);
    if (__atomic_fetch_and(&handle->carveout_ours, ~bit, __ATOMIC_SEQ_CST) & bit)
        handle_set(handle, WHICH, device, set); /* ours may have come after the program's */
    uint32_t before = small ? __atomic_fetch_or(&handle->carveout_small, bit, __ATOMIC_ACQ_REL)
                            : __atomic_fetch_and(&handle->carveout_small, ~bit, __ATOMIC_ACQ_REL);
    if (small != ((before & bit) != 0)) /* whether there is room beside it is another question now */
        handle_doubted(handle);
}

void carveout_answer(const void *value, int device, int *answer) {
    const struct handle *handle = armed_and_ready(VENDOR_CUDA) ? handle_find(value) : NULL;
    const struct handle *origin = handle ? handle_origin(handle) : NULL;
    if (!handle)
        return;
    /* A function has its CUkernel's as long as it has none of its own. */
    const bool shared =
        origin && !has(&handle->carveout_closed, 1) && has(&origin->carveout_ours, bit_of(origin, handle->device));
    if (shared || has(&handle->carveout_ours, bit_of(handle, device)))
        *answer = BY_DEFAULT;
}
