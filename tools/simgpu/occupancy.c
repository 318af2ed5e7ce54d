/* How many blocks of a kernel are resident on one multiprocessor: the arithmetic of NVIDIA's cuda_occupancy.h, and of
 * AMD's hardware (vendor.h has its units).
 *
 * Written from the rules, compared by tests/simgpu with that header, and for AMD with the planner, over hundreds of
 * thousands of configurations.
 */
#include "sim.h"

static int round_up(int value, int granule) {
    return (value + granule - 1) / granule * granule;
}

int sim_warps(int threads) {
    return (threads + WARP - 1) / WARP;
}

int sim_registers_of_warp(int registers) {
    return round_up(registers * WARP, REGISTER_GRANULE);
}

int sim_scalars_of_warp(int scalars) {
    return round_up(scalars, SCALAR_GRANULE);
}

size_t sim_shared_of_block(int static_shared, size_t dynamic) {
    const size_t bytes = (size_t)static_shared + dynamic + RESERVED_SHARED;
    return (bytes + SHARED_GRANULE - 1) / SHARED_GRANULE * SHARED_GRANULE;
}

static int by_registers(const struct gpu *gpu, const struct footprint *footprint, int warps) {
    int most = gpu->blocks;
    if (footprint->registers > 0)
        most = gpu->registers / PARTITIONS / sim_registers_of_warp(footprint->registers) * PARTITIONS / warps;
    if (footprint->scalars > 0) {
        const int by_scalars = SCALAR_FILE / sim_scalars_of_warp(footprint->scalars) * PARTITIONS / warps;
        most = by_scalars < most ? by_scalars : most;
    }
    return most;
}

/* The smallest division of the L1 cache that has so much shared memory. */
static size_t division(const struct gpu *gpu, size_t bytes) {
    static const size_t steps_kib[] = {0, 8, 16, 32, 64, 100, 132, 164, 196, 228};
    for (size_t i = 0; i < sizeof steps_kib / sizeof *steps_kib; i++)
        if (steps_kib[i] * 1024 >= bytes && steps_kib[i] * 1024 < (size_t)gpu->shared)
            return steps_kib[i] * 1024;
    return (size_t)gpu->shared;
}

/* Shared memory of one multiprocessor as it is set up for a kernel: all that there is, unless the kernel prefers
 * less; never less than one block takes. */
size_t sim_shared_room(const struct gpu *gpu, const struct footprint *footprint) {
    const size_t all = (size_t)gpu->shared;
    const size_t shared = sim_shared_of_block(footprint->static_shared, footprint->dynamic);
    if (!footprint->prefers)
        return all;
    const size_t preferred = (size_t)footprint->carveout * all / 100;
    return division(gpu, preferred > shared ? preferred : shared);
}

int sim_occupancy(const struct gpu *gpu, const struct footprint *footprint) {
    if (footprint->threads < 1 || footprint->threads > MAX_BLOCK_THREADS || footprint->registers > MOST_REGISTERS)
        return 0;
    if (footprint->dynamic > (size_t)gpu->shared_optin)
        return 0;
    const int warps = sim_warps(footprint->threads);
    const size_t shared = sim_shared_of_block(footprint->static_shared, footprint->dynamic);
    const size_t asked = (size_t)footprint->static_shared + footprint->dynamic;
    if (asked > (size_t)gpu->shared_optin)
        return 0;
    int blocks = gpu->blocks;
    const int limits[] = {gpu->threads / WARP / warps, by_registers(gpu, footprint, warps),
                          shared > 0 ? (int)(sim_shared_room(gpu, footprint) / shared) : gpu->blocks,
                          BARRIERS > 0 && warps > 1 ? BARRIERS : gpu->blocks};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        blocks = limits[i] < blocks ? limits[i] : blocks;
    return blocks;
}

struct sm_set sim_sm_all(const struct gpu *gpu) {
    struct sm_set set = {0};
    for (int i = 0; i < gpu->multiprocessors; i++)
        sim_sm_add(&set, i);
    return set;
}

int sim_sm_count(const struct sm_set *set) {
    int count = 0;
    for (int i = 0; i < MAX_MULTIPROCESSORS; i++)
        count += sim_sm_has(set, i);
    return count;
}

/* ---- entry points ---- */

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
        struct function *function;
        const CUresult result = sim_function_of(handle, context, true, &function);
        if (result != CUDA_SUCCESS)
            return result;
        const int blocks = blocks_of(function, tried, bytes);
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
