/* From what a block takes to how many fit on one multiprocessor.
 *
 * The rules are those of NVIDIA's cuda_occupancy.h (CUDA 13.0): warps are allocated in fours, because a multiprocessor
 * has four partitions; registers in units of 256 per warp; shared memory in units of 128 bytes, plus what the driver
 * reserves per block (compute capability 8.0 and newer). The shared-memory carve-out is taken at its largest.
 */
#include "core.h"

enum { PARTITIONS = 4, REGISTER_UNIT = 256, SHARED_UNIT = 128 };

static uint64_t round_up(uint64_t value, uint64_t unit) {
    return (value + unit - 1) / unit * unit;
}

/* What one block takes, in the units of the multiprocessor. 64-bit, so that absurd footprints cannot wrap. */
struct demand {
    uint64_t warps;
    uint64_t registers_per_warp;
    uint64_t shared;
};

static struct demand demand_of(const struct overlap_gpu *gpu, const struct overlap_footprint *footprint) {
    uint32_t warp = gpu->warp_size ? gpu->warp_size : 32;
    return (struct demand){
        .warps = round_up(footprint->threads, warp) / warp,
        .registers_per_warp = round_up((uint64_t)footprint->registers * warp, REGISTER_UNIT),
        .shared = round_up((uint64_t)footprint->static_shared + footprint->dynamic_shared + gpu->shared_reserved,
                           SHARED_UNIT),
    };
}

static bool launchable(const struct overlap_gpu *gpu, const struct overlap_footprint *footprint,
                       const struct demand *demand) {
    return footprint->threads >= 1 && footprint->threads <= gpu->threads_per_block && footprint->registers <= 255 &&
           (uint64_t)footprint->static_shared + footprint->dynamic_shared <= gpu->shared_optin &&
           demand->registers_per_warp * round_up(demand->warps, PARTITIONS) <= gpu->registers_per_block;
}

OVERLAP_EXPORT struct overlap_occupancy overlap_occupancy_of(const struct overlap_gpu *gpu,
                                                             const struct overlap_footprint *footprint) {
    struct demand demand = demand_of(gpu, footprint);
    if (!launchable(gpu, footprint, &demand))
        return (struct overlap_occupancy){.blocks = 0, .limit = OVERLAP_LIMIT_NONE};
    uint64_t by_warps = gpu->threads / (gpu->warp_size ? gpu->warp_size : 32) / demand.warps;
    uint64_t by_registers = UINT32_MAX;
    if (demand.registers_per_warp) {
        /* Each partition holds whole warps; a block's warps may lie in any of them. */
        uint64_t warps = gpu->registers / PARTITIONS / demand.registers_per_warp * PARTITIONS;
        by_registers = warps / demand.warps;
    }
    uint64_t by_shared = demand.shared ? gpu->shared / demand.shared : UINT32_MAX;

    struct overlap_occupancy result = {.blocks = gpu->blocks, .limit = OVERLAP_LIMIT_SLOTS};
    if (by_warps < result.blocks)
        result = (struct overlap_occupancy){.blocks = (uint32_t)by_warps, .limit = OVERLAP_LIMIT_WARPS};
    if (by_registers < result.blocks)
        result = (struct overlap_occupancy){.blocks = (uint32_t)by_registers, .limit = OVERLAP_LIMIT_REGISTERS};
    if (by_shared < result.blocks)
        result = (struct overlap_occupancy){.blocks = (uint32_t)by_shared, .limit = OVERLAP_LIMIT_SHARED};
    return result;
}

/* Warps of a block on its fullest partition, when they are spread evenly: the safe form, true wherever they really go.
 */
static uint64_t warps_per_partition(const struct demand *demand) {
    return round_up(demand->warps, PARTITIONS) / PARTITIONS;
}

OVERLAP_EXPORT int32_t overlap_blocks_beside(const struct overlap_gpu *gpu, const struct overlap_footprint *computation,
                                             const struct overlap_footprint *communication) {
    struct demand k = demand_of(gpu, computation), c = demand_of(gpu, communication);
    if (overlap_occupancy_of(gpu, communication).blocks == 0)
        return -1;
    uint64_t slots = gpu->threads / (gpu->warp_size ? gpu->warp_size : 32) / PARTITIONS;
    uint64_t registers = gpu->registers / PARTITIONS;
    uint64_t blocks = overlap_occupancy_of(gpu, computation).blocks;
    for (; blocks > 0; blocks--) {
        bool room =
            blocks + 1 <= gpu->blocks && blocks * k.shared + c.shared <= gpu->shared &&
            blocks * warps_per_partition(&k) + warps_per_partition(&c) <= slots &&
            blocks * warps_per_partition(&k) * k.registers_per_warp + warps_per_partition(&c) * c.registers_per_warp <=
                registers;
        if (room)
            break;
    }
    return (int32_t)blocks;
}

OVERLAP_EXPORT uint32_t overlap_size_for_blocks(const struct overlap_gpu *gpu, const struct overlap_launch *launch,
                                                uint32_t blocks) {
    struct overlap_footprint footprint = launch->footprint;
    if (overlap_occupancy_of(gpu, &footprint).blocks <= blocks)
        return footprint.dynamic_shared;
    /* The least allocation of which blocks + 1 do not fit, and the least request that is rounded up to it. */
    uint64_t allocated = (gpu->shared / ((uint64_t)blocks + 1) / SHARED_UNIT + 1) * SHARED_UNIT;
    uint64_t taken = (uint64_t)gpu->shared_reserved + footprint.static_shared;
    uint64_t total = allocated - SHARED_UNIT + 1;
    uint64_t dynamic = total > taken ? total - taken : 0;
    if (dynamic < footprint.dynamic_shared)
        dynamic = footprint.dynamic_shared;
    if (dynamic > launch->maximum_dynamic || dynamic > OVERLAP_WORD_SIZE_MASK)
        return UINT32_MAX;
    footprint.dynamic_shared = (uint32_t)dynamic;
    uint32_t resident = overlap_occupancy_of(gpu, &footprint).blocks;
    return resident >= 1 && resident <= blocks ? (uint32_t)dynamic : UINT32_MAX;
}
