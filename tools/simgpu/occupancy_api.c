/* The occupancy entry points: the arithmetic of occupancy.c for a function as it stands. */
#include "sim.h"

typedef size_t (*dynamic_for)(int threads);

struct asked {
    const struct function *function;
    const struct gpu *gpu;
};

static CUresult find(CUfunction handle, struct context *context, struct asked *out) {
    struct function *function;
    const CUresult result = sim_function_of(handle, context, true, &function);
    if (result == CUDA_SUCCESS)
        *out = (struct asked){function, sim_gpu_of(function)};
    return result;
}

/* Resident blocks on a multiprocessor; 0 where the function does not allow such a block. */
static int blocks_of(const struct asked *asked, int threads, size_t dynamic) {
    const struct footprint footprint = sim_footprint(asked->function, threads, dynamic);
    if (threads > sim_max_threads(asked->function->image, asked->gpu) ||
        dynamic > (size_t)sim_setting(asked->function, FUNC_MAX_DYNAMIC))
        return 0;
    return sim_occupancy(asked->gpu, &footprint);
}

static CUresult max_active_blocks(int *blocks, CUfunction handle, int threads, size_t dynamic) {
    SIM_CALL_IN_CONTEXT(context);
    struct asked asked;
    if (blocks == NULL || threads < 1)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = find(handle, context, &asked);
    if (result == CUDA_SUCCESS)
        *blocks = blocks_of(&asked, threads, dynamic);
    return result;
}

SIM_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction handle, int threads,
                                                             size_t dynamic) {
    return max_active_blocks(blocks, handle, threads, dynamic);
}

SIM_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction handle, int threads,
                                                                      size_t dynamic, unsigned int flags) {
    return flags <= 1 ? max_active_blocks(blocks, handle, threads, dynamic) : CUDA_ERROR_INVALID_VALUE;
}

/* The block size with the most threads resident; of those, the largest block, as cuda_occupancy.h does. */
static CUresult potential_block_size(int *grid, int *block, CUfunction handle, dynamic_for of_block, size_t dynamic,
                                     int limit) {
    SIM_CALL_IN_CONTEXT(context);
    if (grid == NULL || block == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    int most = 0;
    *grid = *block = 0;
    limit = limit > 0 && limit < MAX_BLOCK_THREADS ? limit : MAX_BLOCK_THREADS;
    for (int threads = (limit + WARP - 1) / WARP * WARP; threads > 0; threads -= WARP) {
        const int tried = threads < limit ? threads : limit;
        size_t bytes = dynamic;
        if (of_block != NULL) { /* the program's function may call the driver */
            sim_unlock();
            bytes = of_block(tried);
            sim_lock();
        }
        struct asked asked;
        const CUresult result = find(handle, context, &asked);
        if (result != CUDA_SUCCESS)
            return result;
        const int blocks = blocks_of(&asked, tried, bytes);
        if (blocks * tried > most) {
            most = blocks * tried;
            *block = tried;
            *grid = blocks * sim_sm_count(sim_current_usable(context));
        }
    }
    return CUDA_SUCCESS;
}

SIM_API CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction handle, dynamic_for of_block,
                                                  size_t dynamic, int limit) {
    return potential_block_size(grid, block, handle, of_block, dynamic, limit);
}

SIM_API CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction handle,
                                                           dynamic_for of_block, size_t dynamic, int limit,
                                                           unsigned int flags) {
    return flags <= 1 ? potential_block_size(grid, block, handle, of_block, dynamic, limit) : CUDA_ERROR_INVALID_VALUE;
}

/* The most dynamic bytes with which `blocks` blocks are still resident, and that the function allows. (NVIDIA's header
 * forgets the reserved kilobyte here; this is the true answer.) */
SIM_API CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *dynamic, CUfunction handle, int blocks, int threads) {
    SIM_CALL_IN_CONTEXT(context);
    struct asked asked;
    if (dynamic == NULL || blocks < 1 || threads < 1)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = find(handle, context, &asked);
    if (result != CUDA_SUCCESS)
        return result;
    if (blocks_of(&asked, threads, 0) < blocks)
        return CUDA_ERROR_INVALID_VALUE;
    const size_t each = (size_t)asked.gpu->shared / (size_t)blocks / SHARED_GRANULE * SHARED_GRANULE;
    const size_t found = each - RESERVED_SHARED - (size_t)asked.function->image->static_shared;
    const size_t most = (size_t)sim_setting(asked.function, FUNC_MAX_DYNAMIC);
    *dynamic = found < most ? found : most;
    return CUDA_SUCCESS;
}

/* ---- clusters ---- */

/* What a launch would be, with its attributes, in the context of its stream. */
static CUresult request_of(CUfunction handle, const CUlaunchConfig *config, struct launch_request *request,
                           struct stream **stream) {
    struct context *const context = sim_current_context();
    CUresult result = sim_stream_of(config->hStream, false, context, stream);
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
    struct launch_request request = {.grid = {config->gridDimX, config->gridDimY, config->gridDimZ}};
    struct stream *stream;
    CUresult result = request_of(handle, config, &request, &stream);
    if (result == CUDA_SUCCESS)
        result = sim_launch_cluster(&request);
    if (result != CUDA_SUCCESS)
        return result;
    if (request.cluster == 0) /* neither the launch nor the function says one */
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    const unsigned int threads = config->blockDimX * config->blockDimY * config->blockDimZ;
    if (threads < 1 || threads > MAX_BLOCK_THREADS)
        return CUDA_ERROR_INVALID_VALUE;
    const struct asked asked = {request.function, sim_gpu_of(request.function)};
    *clusters =
        sim_active_clusters(&stream->usable, blocks_of(&asked, (int)threads, config->sharedMemBytes), request.cluster);
    return CUDA_SUCCESS;
}

/* The size that a function requires, or the largest one of which a cluster fits. */
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
    const struct asked asked = {function, sim_gpu_of(function)};
    const int threads = (int)(config->blockDimX * config->blockDimY * config->blockDimZ);
    const int blocks = blocks_of(&asked, threads, config->sharedMemBytes);
    int largest = sim_largest_cluster(function);
    while (largest > 1 && sim_active_clusters(&stream->usable, blocks, largest) == 0)
        largest /= 2;
    *size = required > 0 ? required : largest;
    return CUDA_SUCCESS;
}
