/* The preferred shared-memory carve-out of a kernel (attribute 9). Kernels that are to share a multiprocessor with
 * communication ask for the largest. The reason: a multiprocessor changes its configuration only while it is idle, so
 * next to blocks launched with the default there is no room, whatever the arithmetic says. Communication itself need
 * not ask, and asks only if the policy says so, because that costs NCCL bandwidth (both measured on an H200:
 * tools/gpu/results). The program's own setting wins, for the launch, the function, the kernel or the context (the
 * driver follows the first of these that is set), and the program reads back what it set.
 *
 * Each handle has two bits for each device. `ours`: the driver has or may have our setting. `closed`: we no longer set
 * one. The thread that ends up with both set writes the program's value to the driver once more, so that it holds
 * whichever call came last. A function inherits the setting of its CUkernel until it gets its own, so ours is set on
 * the CUkernel.
 */
#include "../../core/core.h"
#include "../common/decide.h"
#include "../common/handle.h"
#include "../common/streams.h"
#include "cuda.h"

#define WHICH CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
enum { BY_DEFAULT = -1 };

/* A CUkernel has a preference for each device; a function belongs to one device. */
static uint32_t bit_of(const struct handle *handle, int device) {
    return handle_kind(handle) == HANDLE_KERNEL ? UINT32_C(1) << (device & 31) : 1;
}

static bool has(const uint32_t *devices, uint32_t bit) {
    return __atomic_load_n(devices, __ATOMIC_ACQUIRE) & bit;
}

/* The form of a kernel that holds a function's setting: the function itself, or its CUkernel. */
static struct handle *holder_of(struct handle *function) {
    struct handle *origin = handle_origin(function);
    return origin && !has(&function->carveout_closed, 1) ? origin : function;
}

/* The form whose setting applies to launches of this one. */
static struct handle *effective(struct handle *handle) {
    struct handle *function = handle_kind(handle) == HANDLE_KERNEL ? cuda_function_of(handle) : handle;
    return function ? holder_of(function) : handle;
}

/* True if the program prefers cache to shared memory for kernels without a preference of their own. */
static bool context_prefers_cache(void) {
    int config = CU_FUNC_CACHE_PREFER_NONE;
    return driver.cuCtxGetCacheConfig && driver.cuCtxGetCacheConfig(&config) == CUDA_SUCCESS &&
           (config == CU_FUNC_CACHE_PREFER_L1 || config == CU_FUNC_CACHE_PREFER_EQUAL);
}

bool cuda_prefers_cache(struct handle *handle, int device) {
    const struct handle *counts = effective(handle);
    const uint32_t bit = bit_of(counts, device);
    int preferred = BY_DEFAULT;
    if (has(&counts->carveout_ours, bit) || handle_get(counts, WHICH, device, &preferred) != CUDA_SUCCESS)
        return false;
    if (preferred != BY_DEFAULT)
        return preferred != CU_SHAREDMEM_CARVEOUT_MAX_SHARED;
    return has(&counts->carveout_closed, bit) || context_prefers_cache();
}

void cuda_prefer_shared(struct handle *handle, int device) {
    handle = effective(handle);
    const uint32_t bit = bit_of(handle, device);
    int preferred = BY_DEFAULT;
    if (has(&handle->carveout_ours, bit) || has(&handle->carveout_closed, bit) || context_prefers_cache())
        return;
    if (handle_get(handle, WHICH, device, &preferred) != CUDA_SUCCESS || preferred != BY_DEFAULT) {
        __atomic_fetch_or(&handle->carveout_closed, bit, __ATOMIC_RELEASE);
        return;
    }
    /* Set the bit first, so that a read by the program meanwhile does not return our value. */
    __atomic_fetch_or(&handle->carveout_ours, bit, __ATOMIC_SEQ_CST);
    if (handle_set(handle, WHICH, device, CU_SHAREDMEM_CARVEOUT_MAX_SHARED) != CUDA_SUCCESS) {
        __atomic_fetch_or(&handle->carveout_closed, bit, __ATOMIC_RELEASE);
        __atomic_fetch_and(&handle->carveout_ours, ~bit, __ATOMIC_RELEASE);
    } else if (__atomic_load_n(&handle->carveout_closed, __ATOMIC_SEQ_CST) & bit &&
               handle_set(handle, WHICH, device, __atomic_load_n(&handle->carveout_asked, __ATOMIC_ACQUIRE)) ==
                   CUDA_SUCCESS)
        __atomic_fetch_and(&handle->carveout_ours, ~bit, __ATOMIC_RELEASE);
}

static void take_back(struct handle *handle) {
    if (handle_is_ending(handle)) /* the driver may have freed it */
        return;
    uint32_t ours = __atomic_exchange_n(&handle->carveout_ours, 0, __ATOMIC_SEQ_CST);
    for (int device = 0; ours; device++, ours >>= 1)
        if (ours & 1)
            handle_set(handle, WHICH, device, BY_DEFAULT);
}

bool carveout_withdraw(struct handle *handle) {
    bool any = false;
    for (; handle; handle = handle_origin(handle)) {
        __atomic_store_n(&handle->carveout_asked, BY_DEFAULT, __ATOMIC_RELEASE);
        any |= __atomic_exchange_n(&handle->carveout_closed, UINT32_MAX, __ATOMIC_SEQ_CST) != UINT32_MAX;
        take_back(handle);
    }
    return any;
}

/* A program may set the same preference at every step (CoMD does, twice), which changes nothing. */
void carveout_of_context(int config) {
    static uint64_t last_context;
    static int last = -1;
    const uint64_t context = context_here(VENDOR_CUDA);
    if (!(streams_wanted() & STREAMS_SHAPES) ||
        (config == OVERLAP_RELAXED(last) && context == OVERLAP_RELAXED(last_context)))
        return;
    __atomic_store_n(&last, config, __ATOMIC_RELAXED);
    __atomic_store_n(&last_context, context, __ATOMIC_RELAXED);
    decisions_forget();
}

void carveout_is_programs(const void *value, int device, int set) {
    struct handle *handle = armed_and_ready(VENDOR_CUDA) ? handle_find(value) : NULL;
    if (!handle)
        return;
    const uint32_t bit = bit_of(handle, device);
    const bool small = set != CU_SHAREDMEM_CARVEOUT_MAX_SHARED;
    __atomic_store_n(&handle->carveout_asked, set, __ATOMIC_RELEASE);
    __atomic_fetch_or(&handle->carveout_closed, bit, __ATOMIC_SEQ_CST);
    if (__atomic_fetch_and(&handle->carveout_ours, ~bit, __ATOMIC_SEQ_CST) & bit)
        handle_set(handle, WHICH, device, set); /* ours may have reached the driver after the program's */
    uint32_t before = small ? __atomic_fetch_or(&handle->carveout_small, bit, __ATOMIC_ACQ_REL)
                            : __atomic_fetch_and(&handle->carveout_small, ~bit, __ATOMIC_ACQ_REL);
    if (small != ((before & bit) != 0)) /* a changed carve-out changes whether communication fits */
        handle_invalidate(handle);
}

void carveout_answer(const void *value, int device, int *answer) {
    struct handle *handle = armed_and_ready(VENDOR_CUDA) ? handle_find(value) : NULL;
    if (!handle)
        return;
    const struct handle *holder = handle_kind(handle) == HANDLE_KERNEL ? handle : holder_of(handle);
    if (has(&holder->carveout_ours, bit_of(holder, holder == handle ? device : handle_device(handle))))
        *answer = BY_DEFAULT;
}
