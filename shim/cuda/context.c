/* Contexts: they show that the process may launch kernels, and handles end with them. */
#include "../core/core.h"
#include "../gpu/handle.h"
#include "../gpu/captures.h"
#include "../gpu/streams.h"
#include "../gpu/waits.h"
#include "cuda.h"

/* cuInit alone is no use of a GPU: a process that only counts GPUs needs the driver and no context, as torchrun
 * (PyTorch 2.11) before it starts its ranks. */
CUresult init_body(ENTRY, uint32_t flags) {
    REAL_OR_RETURN(cuInit);
    CUresult result = real(flags);
    if (result == CUDA_SUCCESS)
        overlap_page_initialised();
    return result;
}

static uint64_t primaries[OVERLAP_DEVICES]; /* retained primary contexts; the address does not change */
static uint32_t retained[OVERLAP_DEVICES];  /* how often, as far as is known (primary_end_body) */

static bool has_entry(CUdevice device) {
    return device >= 0 && device < OVERLAP_DEVICES;
}

static CUresult created(const CUcontext *context, CUresult result) {
    current_is_unknown(VENDOR_CUDA);
    if (result != CUDA_SUCCESS)
        return result;
    if (context)
        context_made((uint64_t)(uintptr_t)*context);
    thread_opens_gpu();
    return result;
}

CUresult context_create_body(ENTRY, CUcontext *context, uint32_t flags, CUdevice device) {
    REAL_OR_RETURN(cuCtxCreate);
    return created(context, real(context, flags, device));
}

CUresult context_create_v3_body(ENTRY, CUcontext *context, void *affinities, int count, uint32_t flags,
                                CUdevice device) {
    REAL_OR_RETURN(cuCtxCreate_v3);
    return created(context, real(context, affinities, count, flags, device));
}

CUresult context_create_v4_body(ENTRY, CUcontext *context, void *parameters, uint32_t flags, CUdevice device) {
    REAL_OR_RETURN(cuCtxCreate_v4);
    return created(context, real(context, parameters, flags, device));
}

/* The current context stays. */
CUresult primary_retain_body(ENTRY, CUcontext *context, CUdevice device) {
    REAL_OR_RETURN(cuDevicePrimaryCtxRetain);
    const CUresult result = real(context, device);
    if (result != CUDA_SUCCESS)
        return result;
    if (context && has_entry(device)) {
        __atomic_store_n(&primaries[device], (uint64_t)(uintptr_t)*context, __ATOMIC_RELAXED);
        __atomic_add_fetch(&retained[device], 1, __ATOMIC_RELAXED);
    }
    thread_opens_gpu();
    return result;
}

/* A context takes its functions with it, and the driver may reuse their addresses. cuCtxDetach may leave the context
 * alive; it then stays current. */
CUresult context_destroy_body(ENTRY, CUcontext context) {
    REAL_OR_RETURN(cuCtxDestroy);
    const struct handle_scope ending = handle_ends(HANDLES_OF_CONTEXT, (uintptr_t)context);
    const uint64_t its = (uint64_t)(uintptr_t)context;
    const uint32_t captures = captures_of_context(its, NO_DEVICE);
    const bool made = context_is_made(its);
    streams_context_ends(VENDOR_CUDA, its, NO_DEVICE);
    context_unmade(its); /* before the call: another thread may get its handle before it returns */
    CUresult result = real(context);
    current_is_unknown(VENDOR_CUDA);
    const bool gone = result == CUDA_SUCCESS && !(hook == HOOK_cuCtxDetach && cuda_context() == its);
    handle_ended(&ending, gone);
    captures_context_ended(its, NO_DEVICE, gone ? captures : 0);
    streams_context_ended(VENDOR_CUDA, its, NO_DEVICE, gone);
    if (made && !gone)
        context_made(its);
    return result;
}

CUresult context_set_body(ENTRY, CUcontext context) {
    REAL_OR_RETURN(cuCtxSetCurrent);
    const CUresult result = real(context);
    current_is_unknown(VENDOR_CUDA);
    return result;
}

CUresult context_pop_body(ENTRY, CUcontext *context) {
    REAL_OR_RETURN(cuCtxPopCurrent);
    const CUresult result = real(context);
    current_is_unknown(VENDOR_CUDA);
    return result;
}

CUresult context_wait_v2_body(ENTRY, CUcontext context) {
    REAL_OR_RETURN(cuCtxSynchronize_v2);
    const CUresult result = real(context);
    if (result != CUDA_SUCCESS)
        return result;
    if (streams_wanted() & STREAMS_WINDOWS)
        context_waited(VENDOR_CUDA, context ? (uint64_t)(uintptr_t)context : current_context(VENDOR_CUDA));
    if (streams_tracked() && (!context || (uint64_t)(uintptr_t)context == current_context(VENDOR_CUDA)))
        other_waited();
    count_host_wait();
    return result;
}

/* With the primary context of a device all ends that is not of a context made by the program. */
struct ending {
    struct handle_scope handles;
    CUdevice device;
    uint32_t captures;
};

static struct ending primary_ends(CUdevice device) {
    const uint32_t captures = captures_of_context(0, device);
    streams_context_ends(VENDOR_CUDA, 0, device);
    return (struct ending){handle_ends(HANDLES_OF_DEVICE, (uint64_t)device), device, captures};
}

static void primary_ended(const struct ending *ending, bool gone) {
    handle_ended(&ending->handles, gone);
    captures_context_ended(0, ending->device, gone ? ending->captures : 0);
    streams_context_ended(VENDOR_CUDA, 0, ending->device, gone);
}

/* The primary context lives until its last user releases it; only the driver has that count. */
static bool primary_is_gone(CUdevice device) {
    uint32_t flags = 0;
    int active = 1;
    return driver.cuDevicePrimaryCtxGetState &&
           driver.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && !active;
}

/* Does this release leave the context to other users? Counted as far as calls are seen. */
static bool releases_one_of_many(CUdevice device) {
    uint32_t count = has_entry(device) ? OVERLAP_RELAXED(retained[device]) : 0;
    while (count &&
           !__atomic_compare_exchange_n(&retained[device], &count, count - 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
    return count > 1;
}

/* Programs release the primary context often (UCX: at every copy), and nearly always others use it still: nothing ends
 * then, and the driver is asked once whether that is so. If it is the last user that we know, what may end is marked
 * before the call. If users that we do not know remain, they count as one from then on. */
CUresult primary_end_body(ENTRY, CUdevice device) {
    REAL_OR_RETURN(cuDevicePrimaryCtxReset);
    const bool reset = hook == HOOK_cuDevicePrimaryCtxReset || hook == HOOK_cuDevicePrimaryCtxReset_v2;
    const bool stays = !reset && releases_one_of_many(device);
    if (!armed_and_ready(VENDOR_CUDA))
        return real(device);
    struct ending ending;
    if (!stays)
        ending = primary_ends(device);
    const CUresult result = real(device);
    const bool gone = result == CUDA_SUCCESS && (reset || primary_is_gone(device));
    if (stays && !gone)
        return result;
    if (stays)
        ending = primary_ends(device);
    primary_ended(&ending, gone);
    if (!reset && !gone && has_entry(device))
        __atomic_add_fetch(&retained[device], 1, __ATOMIC_RELAXED);
    return result;
}

/* A green context is a part of the primary one: it ends no kernel and no stream, but it may have been its last user. */
CUresult green_context_destroy_body(ENTRY, CUgreenCtx context) {
    REAL_OR_RETURN(cuGreenCtxDestroy);
    const CUresult result = real(context);
    current_is_unknown(VENDOR_CUDA);
    for (CUdevice device = 0; result == CUDA_SUCCESS && armed_and_ready(VENDOR_CUDA) && device < OVERLAP_DEVICES;
         device++)
        if (OVERLAP_RELAXED(primaries[device]) && primary_is_gone(device)) {
            const struct ending ending = primary_ends(device);
            primary_ended(&ending, true);
        }
    return result;
}
