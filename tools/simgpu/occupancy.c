/* How many blocks of a kernel are resident on one multiprocessor: the arithmetic of NVIDIA's cuda_occupancy.h.
 *
 * Written from the rules, compared by tests/simgpu with that header over hundreds of thousands of configurations.
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

size_t sim_shared_of_block(int static_shared, size_t dynamic) {
    const size_t bytes = (size_t)static_shared + dynamic + RESERVED_SHARED;
    return (bytes + SHARED_GRANULE - 1) / SHARED_GRANULE * SHARED_GRANULE;
}

static int by_registers(const struct gpu *gpu, const struct footprint *footprint, int warps) {
    if (footprint->registers <= 0)
        return gpu->blocks;
    const int of_warp = sim_registers_of_warp(footprint->registers);
    return gpu->registers / PARTITIONS / of_warp * PARTITIONS / warps;
}

int sim_occupancy(const struct gpu *gpu, const struct footprint *footprint) {
    if (footprint->threads < 1 || footprint->threads > MAX_BLOCK_THREADS || footprint->registers > 255)
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
                          (int)((size_t)gpu->shared / shared)};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        blocks = limits[i] < blocks ? limits[i] : blocks;
    return blocks;
}
