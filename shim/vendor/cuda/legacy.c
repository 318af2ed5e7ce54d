/* Launches whose block or size was set by calls before, and launches on several devices at once: nothing is known about
 * them that could be shaped, so they are counted and passed on. */
#include "../common/windows.h"
#include "cuda.h"

static void count(enum overlap_way way, uint32_t launches, uint32_t reason) {
    for (uint32_t i = 0; overlap_armed() && i < launches; i++)
        launch_count_reason(way, reason);
}

/* How many dynamic bytes such a launch asks for is known to the driver only, which is to refuse what the program has not
 * allowed: all forms of the kernel get the program's own limit and carve-out back, and it is left alone. */
static void leave_to_program(CUfunction function) {
    struct handle *handle = armed_and_ready(VENDOR_CUDA) ? handle_find(function) : NULL;
    if (!handle || handle_is_marked(handle, HANDLE_PROGRAMS_OWN))
        return;
    handle_mark(handle, HANDLE_PROGRAMS_OWN);
    handle_each_form(handle, limit_give_back);
    carveout_withdraw(handle);
}

CUresult launch_legacy_body(enum overlap_way way, enum hook hook, uintptr_t site, CUfunction function) {
    REAL_OR_RETURN(cuLaunch);
    leave_to_program(function);
    count(way, 1, OVERLAP_REASON_unknown_footprint);
    copy_made(NULL, STREAM_OF_CONTEXT);
    return real(function);
}

CUresult launch_grid_body(enum overlap_way way, enum hook hook, uintptr_t site, CUfunction function, int width,
                          int height) {
    REAL_OR_RETURN(cuLaunchGrid);
    leave_to_program(function);
    count(way, 1, OVERLAP_REASON_unknown_footprint);
    copy_made(NULL, STREAM_OF_CONTEXT);
    return real(function, width, height);
}

CUresult launch_grid_async_body(enum overlap_way way, enum hook hook, uintptr_t site, CUfunction function, int width,
                                int height, CUstream stream) {
    REAL_OR_RETURN(cuLaunchGridAsync);
    leave_to_program(function);
    count(way, 1, OVERLAP_REASON_unknown_footprint);
    copy_made(stream, STREAM_OF_CONTEXT);
    return real(function, width, height, stream);
}

CUresult launch_multi_device_body(enum overlap_way way, enum hook hook, uintptr_t site, CUDA_LAUNCH_PARAMS *launches,
                                  uint32_t number, uint32_t flags) {
    REAL_OR_RETURN(cuLaunchCooperativeKernelMultiDevice);
    const uint32_t seen = launches && number <= OVERLAP_DEVICES ? number : 0; /* else the driver's to refuse */
    for (uint32_t i = 0; i < seen; i++)
        leave_to_program(launches[i].function);
    count(way, seen, OVERLAP_REASON_cooperative);
    return real(launches, number, flags);
}
