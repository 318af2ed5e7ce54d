/* The occupancy entry points: the arithmetic of occupancy.c for a function as it stands. */
#include "sim.h"

typedef size_t (*dynamic_for)(int threads);

/* Resident blocks on a multiprocessor; 0 where the function does not allow such a block. */
int sim_resident(const struct function *function, const struct footprint *footprint) {
    const struct gpu *const gpu = sim_gpu_of(function);
    if (footprint->threads > sim_max_threads(function->image, gpu) ||
        footprint->dynamic > (size_t)sim_setting(function, FUNC_MAX_DYNAMIC))
        return 0;
    return sim_occupancy(gpu, footprint);
}

static int blocks_of(const struct function *function, int threads, size_t dynamic) {
    const struct footprint footprint = sim_footprint(function, threads, dynamic);
    return sim_resident(function, &footprint);
}

static CUresult max_active_blocks(int *blocks, CUfunction handle, int threads, size_t dynamic) {
    SIM_CALL_IN_CONTEXT(context);
    struct function *function;
    if (blocks == NULL || threads < 1)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = sim_function_of(handle, context, true, &function);
    if (result == CUDA_SUCCESS)
        *blocks = blocks_of(function, threads, dynamic);
    return result;
}

SIM_ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessor, max_active_blocks,
          (int *blocks, CUfunction handle, int threads, size_t dynamic), blocks, handle, threads, dynamic)
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
        struct function *function;
        const CUresult result = sim_function_of(handle, context, true, &function);
        if (result != CUDA_SUCCESS)
            return result;
        const int blocks = blocks_of(function, tried, bytes);
        if (blocks * tried > most) {
            most = blocks * tried;
            *block = tried;
            *grid = blocks * sim_gpu(context->device)->multiprocessors;
        }
    }
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuOccupancyMaxPotentialBlockSize, potential_block_size,
          (int *grid, int *block, CUfunction handle, dynamic_for of_block, size_t dynamic, int limit), grid, block,
          handle, of_block, dynamic, limit)
SIM_API CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction handle,
                                                           dynamic_for of_block, size_t dynamic, int limit,
                                                           unsigned int flags) {
    return flags <= 1 ? potential_block_size(grid, block, handle, of_block, dynamic, limit) : CUDA_ERROR_INVALID_VALUE;
}

/* The most dynamic bytes with which `blocks` blocks are still resident, and that the function allows. (NVIDIA's header
 * forgets the reserved kilobyte here; this is the true answer.) */
SIM_API CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *dynamic, CUfunction handle, int blocks, int threads) {
    SIM_CALL_IN_CONTEXT(context);
    struct function *function;
    if (dynamic == NULL || blocks < 1 || threads < 1)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = sim_function_of(handle, context, true, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (blocks_of(function, threads, 0) < blocks)
        return CUDA_ERROR_INVALID_VALUE;
    const size_t each = (size_t)sim_gpu_of(function)->shared / (size_t)blocks / SHARED_GRANULE * SHARED_GRANULE;
    const size_t found = each - RESERVED_SHARED - (size_t)function->image->static_shared;
    const size_t most = (size_t)sim_setting(function, FUNC_MAX_DYNAMIC);
    *dynamic = found < most ? found : most;
    return CUDA_SUCCESS;
}
