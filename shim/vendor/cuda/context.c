/* Contexts: they show that the process may launch kernels, and handles end with them. */
#include "../../core/core.h"
#include "../common/handle.h"
#include "../common/streams.h"
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

static CUresult made(CUresult result) {
    context_unknown(VENDOR_CUDA);
    if (result == CUDA_SUCCESS)
        thread_opens_gpu();
    return result;
}

CUresult context_create_body(ENTRY, CUcontext *context, uint32_t flags, CUdevice device) {
    REAL_OR_RETURN(cuCtxCreate);
    return made(real(context, flags, device));
}

CUresult context_create_v3_body(ENTRY, CUcontext *context, void *affinities, int count, uint32_t flags,
                                CUdevice device) {
    REAL_OR_RETURN(cuCtxCreate_v3);
    return made(real(context, affinities, count, flags, device));
}

CUresult context_create_v4_body(ENTRY, CUcontext *context, void *parameters, uint32_t flags, CUdevice device) {
    REAL_OR_RETURN(cuCtxCreate_v4);
    return made(real(context, parameters, flags, device));
}

static uint64_t primaries[OVERLAP_DEVICES]; /* retained primary contexts; the address does not change */
static uint32_t some_green;                 /* 1: green contexts exist, which end with the primary one */

CUresult primary_retain_body(ENTRY, CUcontext *context, CUdevice device) {
    REAL_OR_RETURN(cuDevicePrimaryCtxRetain);
    const CUresult result = real(context, device);
    if (result == CUDA_SUCCESS && context && device >= 0 && device < OVERLAP_DEVICES)
        __atomic_store_n(&primaries[device], (uint64_t)(uintptr_t)*context, __ATOMIC_RELAXED);
    return made(result);
}

CUresult green_context_create_body(ENTRY, CUgreenCtx *context, void *description, CUdevice device, uint32_t flags) {
    REAL_OR_RETURN(cuGreenCtxCreate);
    __atomic_store_n(&some_green, 1, __ATOMIC_RELAXED);
    return made(real(context, description, device, flags));
}

/* A context takes its functions with it, and the driver may reuse their addresses. cuCtxDetach may leave the context
 * alive; it then stays current. */
CUresult context_destroy_body(ENTRY, CUcontext context) {
    REAL_OR_RETURN(cuCtxDestroy);
    const struct handle_scope ending = handle_ends(HANDLES_OF_CONTEXT, (uintptr_t)context);
    streams_context_ends(VENDOR_CUDA, (uint64_t)(uintptr_t)context, NO_DEVICE);
    CUresult result = real(context);
    context_unknown(VENDOR_CUDA);
    const bool gone =
        result == CUDA_SUCCESS && !(hook == HOOK_cuCtxDetach && cuda_context() == (uint64_t)(uintptr_t)context);
    handle_ended(&ending, gone);
    streams_context_ended(VENDOR_CUDA, (uint64_t)(uintptr_t)context, NO_DEVICE, gone);
    return result;
}

CUresult context_set_body(ENTRY, CUcontext context) {
    REAL_OR_RETURN(cuCtxSetCurrent);
    const CUresult result = real(context);
    context_unknown(VENDOR_CUDA);
    return result;
}

CUresult context_pop_body(ENTRY, CUcontext *context) {
    REAL_OR_RETURN(cuCtxPopCurrent);
    const CUresult result = real(context);
    context_unknown(VENDOR_CUDA);
    return result;
}

CUresult context_wait_v2_body(ENTRY, CUcontext context) {
    REAL_OR_RETURN(cuCtxSynchronize_v2);
    const CUresult result = real(context);
    if (result == CUDA_SUCCESS && streams_wanted() & STREAMS_WINDOWS)
        context_waited(VENDOR_CUDA, context ? (uint64_t)(uintptr_t)context : context_here(VENDOR_CUDA));
    return result;
}

/* The only context that ends with the device's primary one; 0: others may. */
static uint64_t primary_of(CUdevice device) {
    return device >= 0 && device < OVERLAP_DEVICES && !OVERLAP_RELAXED(some_green) ? OVERLAP_RELAXED(primaries[device])
                                                                                   : 0;
}

/* The handles that end with the primary context. Those of other contexts of the device must be kept if possible. */
static struct handle_scope primary_ends(CUdevice device) {
    const uint64_t primary = primary_of(device);
    return primary ? handle_ends(HANDLES_OF_CONTEXT, primary) : handle_ends(HANDLES_OF_DEVICE, (uint64_t)device);
}

/* The primary context lives until its last user releases it; only the driver has that count. */
CUresult primary_end_body(ENTRY, CUdevice device) {
    REAL_OR_RETURN(cuDevicePrimaryCtxReset);
    const bool reset = hook == HOOK_cuDevicePrimaryCtxReset || hook == HOOK_cuDevicePrimaryCtxReset_v2;
    const struct handle_scope ending = primary_ends(device);
    const uint64_t primary = primary_of(device);
    streams_context_ends(VENDOR_CUDA, primary, device);
    CUresult result = real(device);
    uint32_t flags = 0;
    int active = 1;
    const bool gone =
        result == CUDA_SUCCESS && armed_and_ready(VENDOR_CUDA) &&
        (reset || (driver.cuDevicePrimaryCtxGetState &&
                   driver.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && !active));
    handle_ended(&ending, gone);
    streams_context_ended(VENDOR_CUDA, primary, device, gone);
    return result;
}

/* A green context is used through a context made from it, which ends with it. */
CUresult context_from_green_body(ENTRY, CUcontext *context, CUgreenCtx green) {
    REAL_OR_RETURN(cuCtxFromGreenCtx);
    CUresult result = real(context, green);
    if (result == CUDA_SUCCESS && context && overlap_armed())
        handle_learn(*context, HANDLE_CONTEXT, green, NULL, NULL);
    return result;
}

CUresult green_context_destroy_body(ENTRY, CUgreenCtx context) {
    REAL_OR_RETURN(cuGreenCtxDestroy);
    const struct handle_scope ending = handle_ends(HANDLES_OF_OWNER, (uintptr_t)context);
    CUresult result = real(context);
    handle_ended(&ending, result == CUDA_SUCCESS);
    return result;
}
