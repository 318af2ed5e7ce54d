/* Function attributes that the program sets and reads, where we may have changed some. The driver gets the program's
 * value first; then ours is set again if needed. The program reads back what it set. */
#include "../../core/core.h"
#include "../common/handle.h"
#include "cuda.h"

/* The program has set the attribute. device: of a CUkernel. */
static void program_sets(const void *handle, int device, int attribute, int value) {
    limit_program_sets(handle, device, attribute, value);
    if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
        carveout_is_programs(handle, device, value);
    struct handle *known = attribute >= CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH &&
                                   attribute <= CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH && armed_and_ready(VENDOR_CUDA)
                               ? handle_find(handle)
                               : NULL;
    if (known) /* its launches are cluster launches from now on */
        handle_invalidate(known);
}

/* Replaces the driver's value by the one that the program has set. */
static void answer_program(const void *handle, int device, int attribute, int *value) {
    limit_answer(handle, device, attribute, value);
    if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
        carveout_answer(handle, device, value);
}

/* Set the attribute again if another thread has meanwhile raised the limit that the driver must have. */
CUresult function_set_attribute_body(ENTRY, CUfunction function, int attribute, int value) {
    REAL_OR_RETURN(cuFuncSetAttribute);
    int sent;
    CUresult result;
    do
        result = real(function, attribute, sent = limit_for_driver(function, 0, attribute, value));
    while (result == CUDA_SUCCESS && sent != limit_for_driver(function, 0, attribute, value));
    if (result == CUDA_SUCCESS)
        program_sets(function, 0, attribute, value);
    return result;
}

CUresult kernel_set_attribute_body(ENTRY, int attribute, int value, CUkernel kernel, CUdevice device) {
    REAL_OR_RETURN(cuKernelSetAttribute);
    int sent;
    CUresult result;
    do
        result = real(attribute, sent = limit_for_driver(kernel, device, attribute, value), kernel, device);
    while (result == CUDA_SUCCESS && sent != limit_for_driver(kernel, device, attribute, value));
    if (result == CUDA_SUCCESS)
        program_sets(kernel, device, attribute, value);
    return result;
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
    struct handle *handle =
        config != CU_FUNC_CACHE_PREFER_NONE && armed_and_ready(VENDOR_CUDA) ? handle_find(value) : NULL;
    if (handle && carveout_withdraw(handle))
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

CUresult context_set_cache_body(ENTRY, int config) {
    REAL_OR_RETURN(cuCtxSetCacheConfig);
    CUresult result = real(config);
    if (result == CUDA_SUCCESS && armed_and_ready(VENDOR_CUDA))
        carveout_of_context(config);
    return result;
}
