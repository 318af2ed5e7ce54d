/* The occupancy entry points: the arithmetic of occupancy.c for a function as it stands. */
#include "sim.h"

typedef size_t (*dynamic_for)(int threads);

static CUresult footprint_of(CUfunction handle, int threads, size_t dynamic, struct footprint *out) {
    const struct function *const function = sim_handle_get(handle, KIND_FUNCTION);
    const struct kernel *const kernel = function == NULL ? sim_handle_get(handle, KIND_KERNEL) : NULL;
    const struct kernel_image *const image = function != NULL ? function->image : kernel != NULL ? kernel->image : NULL;
    if (image == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    *out = (struct footprint){threads, image->registers, image->static_shared, dynamic};
    if (threads > sim_max_threads(image, sim_config.gpu))
        out->threads = MAX_BLOCK_THREADS + 1; /* no block fits */
    return CUDA_SUCCESS;
}

static CUresult blocks_of(int *blocks, CUfunction handle, int threads, size_t dynamic) {
    SIM_CALL_IN_CONTEXT(context);
    struct footprint footprint;
    if (blocks == NULL || threads < 1)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = footprint_of(handle, threads, dynamic, &footprint);
    if (result == CUDA_SUCCESS)
        *blocks = sim_occupancy(sim_config.gpu, &footprint);
    return result;
}

SIM_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction handle, int threads,
                                                             size_t dynamic) {
    return blocks_of(blocks, handle, threads, dynamic);
}

SIM_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction handle, int threads,
                                                                      size_t dynamic, unsigned int flags) {
    return flags <= 1 ? blocks_of(blocks, handle, threads, dynamic) : CUDA_ERROR_INVALID_VALUE;
}

/* The block size with the most threads resident; of those, the largest block, as cuda_occupancy.h does. */
static CUresult potential_block_size(int *grid, int *block, CUfunction handle, dynamic_for of_block, size_t dynamic,
                                     int limit) {
    SIM_CALL_IN_CONTEXT(context);
    if (grid == NULL || block == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    struct footprint footprint;
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
        const CUresult result = footprint_of(handle, tried, bytes, &footprint);
        if (result != CUDA_SUCCESS)
            return result;
        const int blocks = sim_occupancy(sim_config.gpu, &footprint);
        if (blocks * tried > most) {
            most = blocks * tried;
            *block = tried;
            *grid = blocks * sim_config.gpu->multiprocessors;
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

/* The most dynamic bytes with which `blocks` blocks are still resident. (NVIDIA's header forgets the reserved
 * kilobyte here; this is the true answer.) */
SIM_API CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *dynamic, CUfunction handle, int blocks, int threads) {
    SIM_CALL_IN_CONTEXT(context);
    struct footprint footprint;
    if (dynamic == NULL || blocks < 1 || threads < 1)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = footprint_of(handle, threads, 0, &footprint);
    if (result != CUDA_SUCCESS)
        return result;
    const struct gpu *const gpu = sim_config.gpu;
    if (sim_occupancy(gpu, &footprint) < blocks)
        return CUDA_ERROR_INVALID_VALUE;
    const size_t each = (size_t)gpu->shared / (size_t)blocks / SHARED_GRANULE * SHARED_GRANULE;
    const size_t taken = (size_t)footprint.static_shared;
    const size_t most = (size_t)gpu->shared_optin - taken, found = each - RESERVED_SHARED - taken;
    *dynamic = found < most ? found : most;
    return CUDA_SUCCESS;
}

enum { CLUSTER_SET = 16, LARGEST_CLUSTER = 8 };

/* Clusters are placed in sets of 16 multiprocessors. */
SIM_API CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction handle, const CUlaunchConfig *config) {
    SIM_CALL_IN_CONTEXT(context);
    if (clusters == NULL || config == NULL || (config->numAttrs > 0 && config->attrs == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    if (sim_config.gpu->major < 9)
        return CUDA_ERROR_NOT_SUPPORTED;
    struct launch_request request = {
        .grid = {config->gridDimX, config->gridDimY, config->gridDimZ}, .handle = handle, .cluster = 1};
    CUresult result = sim_function_of(handle, context, true, &request.function);
    if (result == CUDA_SUCCESS)
        result = sim_launch_attributes(&request, config->attrs, config->numAttrs);
    struct footprint footprint;
    const unsigned int threads = config->blockDimX * config->blockDimY * config->blockDimZ;
    if (result == CUDA_SUCCESS && (threads < 1 || threads > MAX_BLOCK_THREADS))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = footprint_of(handle, (int)threads, config->sharedMemBytes, &footprint);
    if (result != CUDA_SUCCESS)
        return result;
    const int blocks = sim_occupancy(sim_config.gpu, &footprint), count = sim_config.gpu->multiprocessors;
    *clusters =
        count / CLUSTER_SET * (CLUSTER_SET * blocks / request.cluster) + count % CLUSTER_SET * blocks / request.cluster;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuOccupancyMaxPotentialClusterSize(int *size, CUfunction handle, const CUlaunchConfig *config) {
    SIM_CALL_IN_CONTEXT(context);
    struct function *function;
    if (size == NULL || config == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (sim_config.gpu->major < 9)
        return CUDA_ERROR_NOT_SUPPORTED;
    const CUresult result = sim_function_of(handle, context, true, &function);
    if (result == CUDA_SUCCESS)
        *size = function->non_portable_cluster ? CLUSTER_SET : LARGEST_CLUSTER;
    return result;
}
