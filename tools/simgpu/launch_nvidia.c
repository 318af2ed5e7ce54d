/* Launches as far as they are NVIDIA's alone: what refuses one, clusters, and the older ways to launch. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

/* ---- clusters ---- */

enum { PORTABLE_CLUSTER = 8, LARGEST_CLUSTER = 16 };

static int largest_cluster(const struct function *function) {
    return sim_setting(function, FUNC_NON_PORTABLE_CLUSTER) != 0 ? LARGEST_CLUSTER : PORTABLE_CLUSTER;
}

/* The blocks of one cluster: as the launch says, or as its function requires; 0 if neither says anything. */
static CUresult set_cluster(struct launch_request *request) {
    const struct function *const function = request->function;
    unsigned int required[3];
    for (int i = 0; i < 3; i++)
        required[i] = (unsigned int)sim_setting(function, FUNC_CLUSTER_WIDTH + i);
    const bool is_required = required[0] > 0 || required[1] > 0 || required[2] > 0;
    const unsigned int *const size = request->set.has_cluster ? request->set.cluster_size : required;
    request->set.cluster = 0;
    if (!request->set.has_cluster && !is_required)
        return CUDA_SUCCESS;
    if (sim_gpu_of(function)->major < FIRST_WITH_CLUSTERS)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (is_required && memcmp(size, required, sizeof required) != 0)
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    const unsigned long long blocks = (unsigned long long)size[0] * size[1] * size[2];
    if (size[0] > LARGEST_CLUSTER || size[1] > LARGEST_CLUSTER || size[2] > LARGEST_CLUSTER || blocks < 1 ||
        blocks > (unsigned long long)largest_cluster(function))
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    for (size_t i = 0; i < 3; i++)
        if (request->grid[i] % size[i] != 0)
            return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    request->set.cluster = (int)blocks;
    return CUDA_SUCCESS;
}

/* Clusters that are resident at once where `blocks` blocks fit on a multiprocessor, whichever multiprocessors those are. */
static int active_clusters(const struct gpu *gpu, int blocks, int cluster) {
    return gpu->multiprocessors * blocks / cluster;
}

/* What a launch would be, with its attributes, in the context of its stream. */
static CUresult request_of(CUfunction handle, const CUlaunchConfig *config, struct launch_request *request,
                           struct stream **stream) {
    CUresult result = sim_stream_of(config->hStream, false, stream);
    if (result == CUDA_SUCCESS)
        result = sim_function_of(handle, (*stream)->context, true, &request->function);
    if (result == CUDA_SUCCESS && sim_gpu_of(request->function)->major < FIRST_WITH_CLUSTERS)
        result = CUDA_ERROR_NOT_SUPPORTED;
    if (result == CUDA_SUCCESS)
        result = sim_launch_attributes(request, config->attrs, config->numAttrs);
    return result;
}

SIM_API CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction handle, const CUlaunchConfig *config) {
    SIM_CALL_IN_CONTEXT(context);
    if (clusters == NULL || config == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    struct launch_request request = {.grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                                     .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                                     .dynamic = config->sharedMemBytes};
    struct stream *stream;
    CUresult result = request_of(handle, config, &request, &stream);
    if (result == CUDA_SUCCESS)
        result = set_cluster(&request);
    if (result != CUDA_SUCCESS)
        return result;
    if (request.set.cluster == 0) /* neither the launch nor the function says one */
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    const unsigned int threads = config->blockDimX * config->blockDimY * config->blockDimZ;
    if (threads < 1 || threads > MAX_BLOCK_THREADS)
        return CUDA_ERROR_INVALID_VALUE;
    const struct footprint footprint = sim_launch_footprint(&request);
    *clusters =
        active_clusters(sim_gpu_of(request.function), sim_resident(request.function, &footprint), request.set.cluster);
    return CUDA_SUCCESS;
}

/* The size that a function requires, or the largest one that it allows. */
SIM_API CUresult cuOccupancyMaxPotentialClusterSize(int *size, CUfunction handle, const CUlaunchConfig *config) {
    SIM_CALL_IN_CONTEXT(context);
    if (size == NULL || config == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    struct launch_request request = {0};
    struct stream *stream;
    const CUresult result = request_of(handle, config, &request, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    const struct function *const function = request.function;
    int required = 1;
    for (int id = FUNC_CLUSTER_WIDTH; id <= FUNC_CLUSTER_DEPTH; id++)
        required *= sim_setting(function, id);
    *size = required > 0 ? required : largest_cluster(function);
    return CUDA_SUCCESS;
}

/* ---- what refuses a launch ---- */

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
    const int resident = sim_occupancy(gpu, &footprint);
    if (resident < 1)
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    unsigned long long most = (unsigned long long)resident * (unsigned long long)gpu->multiprocessors;
    if (request->set.cluster > 1) {
        const int clusters = active_clusters(gpu, resident, request->set.cluster);
        if (clusters < 1)
            return CUDA_ERROR_INVALID_CLUSTER_SIZE;
        most = (unsigned long long)clusters * (unsigned long long)request->set.cluster;
    }
    const unsigned long long blocks = (unsigned long long)request->grid[0] * request->grid[1] * request->grid[2];
    return request->set.cooperative && blocks > most ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE : CUDA_SUCCESS;
}

CUresult sim_launch_check(struct launch_request *request) {
    const struct function *const function = request->function;
    const struct kernel_image *const image = function->image;
    if (!dimensions_are_good(request))
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = set_cluster(request);
    if (result != CUDA_SUCCESS)
        return result;
    const unsigned int threads = request->block[0] * request->block[1] * request->block[2];
    if (threads > MAX_BLOCK_THREADS || (image->bound_written && threads > (unsigned int)image->max_threads))
        return CUDA_ERROR_INVALID_VALUE;
    const int warps = (sim_warps((int)threads) + PARTITIONS - 1) / PARTITIONS * PARTITIONS;
    if (image->registers > 0 && warps * sim_registers_of_warp(image->registers) > sim_gpu_of(function)->registers)
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    if (request->dynamic > (unsigned int)sim_setting(function, FUNC_MAX_DYNAMIC))
        return request->set.cooperative ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE : CUDA_ERROR_INVALID_VALUE;
    if (sim_is_refused(request))
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    return check_residence(request);
}
