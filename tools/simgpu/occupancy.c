/* How many blocks of a kernel are resident on one multiprocessor: the arithmetic of NVIDIA's cuda_occupancy.h, and of
 * AMD's hardware (vendor.h has its units).
 *
 * Written from the rules. tests/simgpu compares it with the planner over hundreds of thousands of configurations, and
 * tests/core the planner with that header and with HIP's formula.
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
