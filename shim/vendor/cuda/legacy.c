/* Launches whose block or size was set by calls before, and launches on several devices at once: nothing is known about
 * them that could be shaped, so they are counted and passed on. */
#include "../common/windows.h"
#include "cuda.h"

static void count(enum overlap_way way, uint32_t launches, uint32_t reason) {
    for (uint32_t i = 0; overlap_armed() && i < launches; i++)
        launch_count_reason(way, reason);
}

CUresult launch_legacy_body(enum overlap_way way, enum hook hook, uintptr_t site, CUfunction function) {
    REAL_OR_RETURN(cuLaunch);
    count(way, 1, OVERLAP_REASON_unknown_footprint);
    copy_made(NULL, STREAM_OF_CONTEXT);
    return real(function);
}

CUresult launch_grid_body(enum overlap_way way, enum hook hook, uintptr_t site, CUfunction function, int width,
                          int height) {
    REAL_OR_RETURN(cuLaunchGrid);
    count(way, 1, OVERLAP_REASON_unknown_footprint);
    copy_made(NULL, STREAM_OF_CONTEXT);
    return real(function, width, height);
}

CUresult launch_grid_async_body(enum overlap_way way, enum hook hook, uintptr_t site, CUfunction function, int width,
                                int height, CUstream stream) {
    REAL_OR_RETURN(cuLaunchGridAsync);
    count(way, 1, OVERLAP_REASON_unknown_footprint);
    copy_made(stream, STREAM_OF_CONTEXT);
    return real(function, width, height, stream);
}

CUresult launch_multi_device_body(enum overlap_way way, enum hook hook, uintptr_t site, CUDA_LAUNCH_PARAMS *launches,
                                  uint32_t number, uint32_t flags) {
    REAL_OR_RETURN(cuLaunchCooperativeKernelMultiDevice);
    /* A count beyond all devices is the driver's to refuse. */
    count(way, number <= OVERLAP_DEVICES ? number : 0, OVERLAP_REASON_cooperative);
    return real(launches, number, flags);
}
