/* Everything for which NVIDIA's driver refuses a launch. */
#include "sim.h"

static bool dimensions_are_good(const struct launch_request *request) {
    static const unsigned int grid[3] = {2147483647, 65535, 65535}, block[3] = {1024, 1024, 64};
    for (size_t i = 0; i < 3; i++)
        if (request->grid[i] < 1 || request->grid[i] > grid[i] || request->block[i] < 1 || request->block[i] > block[i])
            return false;
    return true;
}

/* What must fit at once: a block, a cluster, a whole cooperative grid. */
static CUresult check_residence(const struct launch_request *request) {
    const struct gpu *const gpu = sim_gpu_of(request->function);
    const struct footprint footprint = sim_launch_footprint(request);
    const struct sm_set usable = request->usable != NULL ? *request->usable : sim_sm_all(gpu);
    const int resident = sim_occupancy(gpu, &footprint);
    if (resident < 1)
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    unsigned long long most = (unsigned long long)resident * (unsigned long long)sim_sm_count(&usable);
    if (request->cluster > 1) {
        const int clusters = sim_active_clusters(&usable, resident, request->cluster);
        if (clusters < 1)
            return CUDA_ERROR_INVALID_CLUSTER_SIZE;
        most = (unsigned long long)clusters * (unsigned long long)request->cluster;
    }
    const unsigned long long blocks = (unsigned long long)request->grid[0] * request->grid[1] * request->grid[2];
    return request->cooperative && blocks > most ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE : CUDA_SUCCESS;
}

CUresult sim_launch_check(struct launch_request *request) {
    const struct function *const function = request->function;
    const struct kernel_image *const image = function->image;
    if (!dimensions_are_good(request))
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = sim_launch_cluster(request);
    if (result != CUDA_SUCCESS)
        return result;
    const unsigned int threads = request->block[0] * request->block[1] * request->block[2];
    if (threads > MAX_BLOCK_THREADS || (image->bound_written && threads > (unsigned int)image->max_threads))
        return CUDA_ERROR_INVALID_VALUE;
    const int warps = (sim_warps((int)threads) + PARTITIONS - 1) / PARTITIONS * PARTITIONS;
    if (image->registers > 0 && warps * sim_registers_of_warp(image->registers) > sim_gpu_of(function)->registers)
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    if (request->dynamic > (unsigned int)sim_setting(function, FUNC_MAX_DYNAMIC))
        return request->cooperative ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE : CUDA_ERROR_INVALID_VALUE;
    if (sim_is_refused(request))
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    return check_residence(request);
}
