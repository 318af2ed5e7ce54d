/* Replace what hipGetProcAddress and hipGetDriverEntryPoint return. The runtime is asked first; it returns one of
 * its own symbols (hip_device.cpp of ROCm's clr), so the address identifies the hook. */
#include "../../core/core.h"
#include "../common/streams.h"
#include "hip.h"

/* The real function is the runtime's exported one, which calls through the table if there is one. */
static void replace(void **function) {
    const int hook = *function && overlap_armed() && adopt_driver_of(VENDOR_HIP, *function)
                         ? real_by_address(VENDOR_HIP, *function)
                         : -1;
    if (hook >= 0 && real_remember(ROUTE_LOOKED_UP, (enum hook)hook, real_export((enum hook)hook)))
        *function = hip_thunk(ROUTE_LOOKED_UP, (enum hook)hook);
}

hipError_t hip_proc_address_body(ENTRY, const char *symbol, void **pfn, int version, uint64_t flags, int *status) {
    REAL_OR_RETURN(hipGetProcAddress);
    hipError_t result = real(symbol, pfn, version, flags, status);
    if (result == VENDOR_SUCCESS && pfn)
        replace(pfn);
    return result;
}

hipError_t hip_entry_point_body(ENTRY, const char *symbol, void **function, uint64_t flags, int *status) {
    REAL_OR_RETURN(hipGetDriverEntryPoint);
    hipError_t result = real(symbol, function, flags, status);
    if (result == VENDOR_SUCCESS && function)
        replace(function);
    return result;
}

/* ---- Use of the GPU ---- */

static hipError_t opened(hipError_t result) {
    if (result == VENDOR_SUCCESS)
        thread_opens_gpu();
    return result;
}

static hipError_t initialised(hipError_t result) {
    if (result == VENDOR_SUCCESS)
        overlap_page_initialised();
    return result;
}

hipError_t hip_init_body(ENTRY, uint32_t flags) {
    REAL_OR_RETURN(hipInit);
    return initialised(real(flags));
}

/* Launchers call this before they start their ranks, and use no GPU themselves. */
hipError_t hip_device_count_body(ENTRY, int *count) {
    REAL_OR_RETURN(hipGetDeviceCount);
    return initialised(real(count));
}

hipError_t hip_set_device_body(ENTRY, int device) {
    REAL_OR_RETURN(hipSetDevice);
    const hipError_t result = opened(real(device));
    context_unknown(VENDOR_HIP);
    return result;
}

hipError_t hip_malloc_body(ENTRY, void **address, size_t bytes) {
    REAL_OR_RETURN(hipMalloc);
    return opened(real(address, bytes));
}
