/* Computes how many blocks fit on one multiprocessor from what one block takes.
 *
 * The same arithmetic serves both vendors: a multiprocessor has four partitions; a partition holds warps, whose
 * registers are allocated in units; shared memory is allocated in units, and the driver reserves some per block.
 * overlap_gpu_units() has the units. NVIDIA: the rules of cuda_occupancy.h (CUDA 13.0), at the largest carve-out. AMD:
 * the rules of the HIP runtime, and two that its occupancy functions leave out: the unit of shared memory, and the 16
 * barriers.
 */
#include "core.h"

enum { PARTITIONS = 4, SCALAR_UNIT = 16 };

static uint64_t round_up(uint64_t value, uint64_t unit) {
    return unit ? (value + unit - 1) / unit * unit : value;
}

struct overlap_demand overlap_demand_of(const struct overlap_gpu *gpu, const struct overlap_footprint *footprint) {
    uint32_t warp = gpu->warp_size ? gpu->warp_size : 32;
    struct overlap_demand demand = {
        .warps = round_up(footprint->threads, warp) / warp,
        .registers = round_up((uint64_t)footprint->registers * warp, gpu->register_unit),
        .scalar_registers = round_up(footprint->scalar_registers, SCALAR_UNIT),
        .shared = round_up((uint64_t)footprint->static_shared + footprint->dynamic_shared + gpu->shared_reserved,
                           gpu->shared_unit),
        .barriers = footprint->barriers,
    };
    if (gpu->vendor == OVERLAP_VENDOR_AMD) /* a workgroup of one wave needs no barrier */
        demand.barriers = demand.warps > 1;
    return demand;
}

/* Returns why a block cannot be launched. NONE: it can. */
static enum overlap_limit impossible(const struct overlap_gpu *gpu, const struct overlap_footprint *footprint,
                                     const struct overlap_demand *demand) {
    if (footprint->threads < 1 || footprint->threads > gpu->threads_per_block)
        return OVERLAP_LIMIT_WARPS;
    if (footprint->registers > gpu->registers_per_thread ||
        demand->registers * round_up(demand->warps, PARTITIONS) > gpu->registers_per_block)
        return OVERLAP_LIMIT_REGISTERS;
    if ((uint64_t)footprint->static_shared + footprint->dynamic_shared > gpu->shared_optin)
        return OVERLAP_LIMIT_SHARED;
    return OVERLAP_LIMIT_NONE;
}

static void limit_to(struct overlap_occupancy *result, uint64_t blocks, enum overlap_limit limit) {
    if (blocks < result->blocks)
        *result = (struct overlap_occupancy){.blocks = (uint32_t)blocks, .limit = limit};
}

OVERLAP_EXPORT struct overlap_occupancy overlap_occupancy_of(const struct overlap_gpu *gpu,
                                                             const struct overlap_footprint *footprint) {
    const struct overlap_demand demand = overlap_demand_of(gpu, footprint);
    if (impossible(gpu, footprint, &demand))
        return (struct overlap_occupancy){.blocks = 0, .limit = OVERLAP_LIMIT_NONE};
    struct overlap_occupancy result = {.blocks = gpu->blocks, .limit = OVERLAP_LIMIT_SLOTS};
    limit_to(&result, gpu->threads / (gpu->warp_size ? gpu->warp_size : 32) / demand.warps, OVERLAP_LIMIT_WARPS);
    /* A partition holds whole warps, and a block's warps may be in any partition. */
    uint64_t warps = UINT32_MAX;
    if (demand.registers)
        warps = gpu->registers / PARTITIONS / demand.registers * PARTITIONS;
    if (demand.scalar_registers && gpu->scalar_registers)
        warps = smaller(warps, gpu->scalar_registers / demand.scalar_registers * PARTITIONS);
    limit_to(&result, warps / demand.warps, OVERLAP_LIMIT_REGISTERS);
    if (demand.shared)
        limit_to(&result, gpu->shared / demand.shared, OVERLAP_LIMIT_SHARED);
    if (demand.barriers && gpu->barriers)
        limit_to(&result, gpu->barriers / demand.barriers, OVERLAP_LIMIT_BARRIERS);
    return result;
}

/* Returns the warps of a block on its fullest partition if warps are spread evenly. This is the safe assumption,
 * wherever they really go.
 */
static uint64_t spread(const struct overlap_demand *demand) {
    return round_up(demand->warps, PARTITIONS) / PARTITIONS;
}

enum overlap_limit overlap_beside(const struct overlap_gpu *gpu, uint64_t blocks, const struct overlap_demand *k,
                                  const struct overlap_demand *c) {
    const uint64_t of_k = blocks * spread(k), of_c = spread(c);
    if (of_k * k->registers + of_c * c->registers > gpu->registers / PARTITIONS)
        return OVERLAP_LIMIT_REGISTERS;
    if (gpu->scalar_registers && of_k * k->scalar_registers + of_c * c->scalar_registers > gpu->scalar_registers)
        return OVERLAP_LIMIT_REGISTERS;
    if (of_k + of_c > gpu->threads / (gpu->warp_size ? gpu->warp_size : 32) / PARTITIONS)
        return OVERLAP_LIMIT_WARPS;
    if (blocks + 1 > gpu->blocks)
        return OVERLAP_LIMIT_SLOTS;
    if (gpu->barriers && blocks * k->barriers + c->barriers > gpu->barriers)
        return OVERLAP_LIMIT_BARRIERS;
    return blocks * k->shared + c->shared > gpu->shared ? OVERLAP_LIMIT_SHARED : OVERLAP_LIMIT_NONE;
}

enum overlap_limit overlap_impossible(const struct overlap_gpu *gpu, const struct overlap_footprint *footprint) {
    const struct overlap_demand demand = overlap_demand_of(gpu, footprint);
    return impossible(gpu, footprint, &demand);
}

OVERLAP_EXPORT int32_t overlap_blocks_beside(const struct overlap_gpu *gpu, const struct overlap_footprint *computation,
                                             const struct overlap_footprint *communication) {
    const struct overlap_demand k = overlap_demand_of(gpu, computation), c = overlap_demand_of(gpu, communication);
    if (overlap_occupancy_of(gpu, communication).blocks == 0)
        return -1;
    uint32_t blocks = overlap_occupancy_of(gpu, computation).blocks;
    while (blocks > 0 && overlap_beside(gpu, blocks, &k, &c))
        blocks--;
    return (int32_t)blocks;
}

OVERLAP_EXPORT uint32_t overlap_size_for_blocks(const struct overlap_gpu *gpu, const struct overlap_launch *launch,
                                                uint32_t blocks) {
    if (overlap_occupancy_of(gpu, &launch->footprint).blocks <= blocks)
        return launch->footprint.dynamic_shared;
    const uint64_t dynamic = overlap_least_dynamic(gpu, &launch->footprint, blocks);
    return dynamic > launch->maximum_dynamic || dynamic > OVERLAP_LARGEST_SIZE ? UINT32_MAX : (uint32_t)dynamic;
}

uint64_t overlap_least_dynamic(const struct overlap_gpu *gpu, const struct overlap_footprint *footprint,
                               uint64_t blocks) {
    /* The smallest allocation of which blocks + 1 do not fit, and the smallest request that is rounded up to it. */
    const uint64_t unit = gpu->shared_unit ? gpu->shared_unit : 1;
    const uint64_t total = gpu->shared / (blocks + 1) / unit * unit + 1;
    const uint64_t taken = (uint64_t)gpu->shared_reserved + footprint->static_shared;
    const uint64_t dynamic = total > taken ? total - taken : 0;
    return dynamic > footprint->dynamic_shared ? dynamic : footprint->dynamic_shared;
}
