/* Launches whose block shape or size earlier calls have set, and launches on several devices at once. They cannot be
 * shaped, so they are counted and passed on. */
#include "../../core/core.h"
#include "../common/device.h"
#include "../common/handle.h"
#include "../common/launch.h"
#include "cuda.h"

static void count_as(enum route route, uint32_t launches, uint32_t reason) {
    for (uint32_t i = 0; overlap_armed() && i < launches; i++)
        count_launch(reason);
}

/* Leave the kernel alone from now on, with the program's own carve-out. The driver must refuse a launch with more
 * dynamic bytes than the program has allowed, so all forms of the kernel get the program's own limit back. A
 * concurrent launch of another thread, with the size decided before, may then be refused; so the limit stays raised
 * where the driver accepts both. */
static void leave_to_program(CUfunction function, const uint32_t *known) {
    struct handle *handle = armed_and_ready(VENDOR_CUDA) ? handle_find(function) : NULL;
    if (!handle)
        return;
    const uint32_t bytes = known ? *known : OVERLAP_RELAXED(handle->older_bytes);
    const struct device *device = device_current(VENDOR_CUDA);
    if (!handle_is_marked(handle, HANDLE_PROGRAMS_OWN)) {
        handle_mark(handle, HANDLE_PROGRAMS_OWN);
        carveout_withdraw(handle);
    }
    if (!device || bytes > limit_own(function, device->ordinal))
        (void)handle;
}

CUresult function_shared_size_body(ENTRY, CUfunction function, uint32_t bytes) {
    REAL_OR_RETURN(cuFuncSetSharedSize);
    const CUresult result = real(function, bytes);
    struct handle *handle = result == CUDA_SUCCESS && armed_and_ready(VENDOR_CUDA) ? handle_find(function) : NULL;
    if (handle)
        __atomic_store_n(&handle->older_bytes, bytes, __ATOMIC_RELAXED);
    return result;
}

CUresult launch_legacy_body(ENTRY, CUfunction function) {
    REAL_OR_RETURN(cuLaunch);
    leave_to_program(function, NULL);
    count_as(route, 1, OVERLAP_REASON_unknown_footprint);
    return real(function);
}

CUresult launch_grid_body(ENTRY, CUfunction function, int width, int height) {
    REAL_OR_RETURN(cuLaunchGrid);
    leave_to_program(function, NULL);
    count_as(route, 1, OVERLAP_REASON_unknown_footprint);
    return real(function, width, height);
}

CUresult launch_grid_async_body(ENTRY, CUfunction function, int width, int height, CUstream stream) {
    REAL_OR_RETURN(cuLaunchGridAsync);
    leave_to_program(function, NULL);
    count_as(route, 1, OVERLAP_REASON_unknown_footprint);
    return real(function, width, height, stream);
}

CUresult launch_multi_device_body(ENTRY, CUDA_LAUNCH_PARAMS *launches, uint32_t number, uint32_t flags) {
    REAL_OR_RETURN(cuLaunchCooperativeKernelMultiDevice);
    const uint32_t valid = launches && number <= OVERLAP_DEVICES ? number : 0; /* else left for the driver to refuse */
    for (uint32_t i = 0; i < valid; i++)
        leave_to_program(launches[i].function, &launches[i].sharedMemBytes);
    count_as(route, valid, OVERLAP_REASON_cooperative);
    return real(launches, number, flags);
}
