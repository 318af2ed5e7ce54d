/* Function attributes that the program sets and reads, where a policy that shapes may have changed some: see limit.c and
 * carveout.c. The program reads back what it set. */
#include <string.h>

#include "../core/core.h"
#include "../gpu/handle.h"
#include "../gpu/table.h"
#include "../gpu/streams.h"
#include "cuda.h"

#define LIMIT CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
#define CARVEOUT CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT

/* ---- A launch ---- */

bool cuda_prepare(struct handle *handle, const struct device *device, uint32_t dynamic) {
    if (!device || !limit_raise(handle, device, dynamic))
        return false;
    carveout_raise(handle, device->ordinal);
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* the program may have asked for its occupancy meanwhile (query.c) */
    return !handle_is_marked(handle, HANDLE_OCCUPANCY_ASKED);
}

/* ---- Calls of the program ---- */

/* The kernel, if the attribute concerns its shape and some policy shapes; else NULL. */
static struct handle *tracked(const void *value, int attribute) {
    const bool concerns = attribute == LIMIT || attribute == CARVEOUT ||
                          (attribute >= CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH &&
                           attribute <= CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH);
    return concerns && streams_wanted() & STREAMS_SHAPES && armed_and_ready(VENDOR_CUDA) ? handle_find(value) : NULL;
}

static int for_driver(struct handle *handle, int device, int attribute, int asked) {
    return handle && attribute == LIMIT ? limit_for_driver(handle, device, asked) : asked;
}

/* The driver has accepted what was sent for the program. False: send it again, because another thread has set or is
 * setting ours. */
static bool program_sets(struct handle *handle, int device, int attribute, int set, int sent) {
    if (!handle)
        return true;
    if (attribute == CARVEOUT)
        return carveout_program_sets(handle, device, set);
    if (for_driver(handle, device, attribute, set) != sent)
        return false;
    if (attribute == LIMIT)
        limit_program_sets(handle, device, set);
    else /* its launches are launches in clusters from now on, or no longer */
        handle_invalidate(handle);
    return true;
}

CUresult function_set_attribute_body(ENTRY, CUfunction function, int attribute, int value) {
    REAL_OR_RETURN(cuFuncSetAttribute);
    struct handle *const handle = tracked(function, attribute);
    int sent;
    CUresult result;
    do
        result = real(function, attribute, sent = for_driver(handle, 0, attribute, value));
    while (result == CUDA_SUCCESS && !program_sets(handle, 0, attribute, value, sent));
    return result;
}

CUresult kernel_set_attribute_body(ENTRY, int attribute, int value, CUkernel kernel, CUdevice device) {
    REAL_OR_RETURN(cuKernelSetAttribute);
    struct handle *const handle = tracked(kernel, attribute);
    int sent;
    CUresult result;
    do
        result = real(attribute, sent = for_driver(handle, device, attribute, value), kernel, device);
    while (result == CUDA_SUCCESS && !program_sets(handle, device, attribute, value, sent));
    return result;
}

/* Replaces the driver's value by the program's. */
static void answer_program(const void *value, int device, int attribute, int *answer) {
    struct handle *const handle = tracked(value, attribute);
    if (handle && attribute == LIMIT)
        limit_answer(handle, device, answer);
    if (handle && attribute == CARVEOUT)
        carveout_answer(handle, device, answer);
}

CUresult function_get_attribute_body(ENTRY, int *value, int attribute, CUfunction function) {
    REAL_OR_RETURN(cuFuncGetAttribute);
    CUresult result = real(value, attribute, function);
    if (result == CUDA_SUCCESS && value)
        answer_program(function, 0, attribute, value);
    return result;
}

CUresult kernel_get_attribute_body(ENTRY, int *value, int attribute, CUkernel kernel, CUdevice device) {
    REAL_OR_RETURN(cuKernelGetAttribute);
    CUresult result = real(value, attribute, kernel, device);
    if (result == CUDA_SUCCESS && value)
        answer_program(kernel, device, attribute, value);
    return result;
}

/* A preference between L1 cache and shared memory concerns the carve-out, and ours would override it. */
static void program_prefers(const void *value, int config) {
    struct handle *const handle = config == CU_FUNC_CACHE_PREFER_NONE ? NULL : tracked(value, CARVEOUT);
    if (handle && carveout_leave(handle))
        handle_invalidate(handle);
}

CUresult function_set_cache_body(ENTRY, CUfunction function, int config) {
    REAL_OR_RETURN(cuFuncSetCacheConfig);
    CUresult result = real(function, config);
    if (result == CUDA_SUCCESS)
        program_prefers(function, config);
    return result;
}

CUresult kernel_set_cache_body(ENTRY, CUkernel kernel, int config, CUdevice device) {
    REAL_OR_RETURN(cuKernelSetCacheConfig);
    CUresult result = real(kernel, config, device);
    if (result == CUDA_SUCCESS)
        program_prefers(kernel, config);
    return result;
}
