/* Everything for which the HIP runtime refuses a launch.
 *
 * A launch with more shared memory (static and dynamic) than a compute unit has is taken, as since 6.3; the hardware does
 * not take it, its queue dies, and the runtime ends the process.
 */
#include <stdlib.h>
#include <string.h>

#include "hip.h"

hipError_t hip_waited(hipError_t result) {
    sim_lock();
    if (sim_queue_died) {
        sim_say("queue aborting with error : HSA_STATUS_ERROR_INVALID_ALLOCATION: the runtime asked for more group "
                "segment (LDS) than a compute unit has. code: 0x1005");
        sim_trace_flush();
        abort();
    }
    sim_unlock();
    return result;
}

static hipError_t check_sizes(const struct launch_request *request) {
    const unsigned int *const grid = request->grid, *const block = request->block;
    if (block[0] == 0 || block[1] == 0 || block[2] == 0)
        return hipErrorInvalidConfiguration;
    if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || grid[0] > INT32_MAX || grid[1] > 65536 || grid[2] > 65536)
        return hipErrorInvalidValue;
    for (size_t i = 0; i < 3; i++)
        if ((uint64_t)grid[i] * block[i] > UINT32_MAX)
            return hipErrorInvalidConfiguration;
    return (uint64_t)block[0] * block[1] * block[2] > MAX_BLOCK_THREADS ? hipErrorInvalidValue : hipSuccess;
}

/* The whole of a cooperative grid must fit at once. */
static bool is_too_large(const struct launch_request *request, const struct gpu *gpu, int threads) {
    const unsigned long long blocks = (unsigned long long)request->grid[0] * request->grid[1] * request->grid[2];
    const int fits = hip_occupancy(request->function->image, gpu, threads, request->dynamic) * gpu->multiprocessors;
    return blocks > (unsigned long long)fits;
}

CUresult sim_launch_check(struct launch_request *request) {
    const struct kernel_image *const image = request->function->image;
    const struct gpu *const gpu = sim_gpu_of(request->function);
    const hipError_t sizes = check_sizes(request);
    if (sizes != hipSuccess)
        return sizes;
    const int threads = (int)(request->block[0] * request->block[1] * request->block[2]);
    if (request->dynamic > (unsigned int)gpu->shared)
        return hipErrorInvalidValue;
    if (image->bound_written && threads > image->max_threads)
        return hipErrorLaunchFailure;
    if (request->set.cooperative && is_too_large(request, gpu, threads))
        return hipErrorCooperativeLaunchTooLarge;
    if (sim_is_refused(request))
        return hipErrorLaunchOutOfResources;
    request->overshoots = (size_t)image->static_shared + request->dynamic > (size_t)gpu->shared;
    if (request->overshoots)
        return hipSuccess;
    const struct footprint footprint = sim_launch_footprint(request);
    return sim_occupancy(gpu, &footprint) > 0 ? hipSuccess : hipErrorLaunchOutOfResources;
}
