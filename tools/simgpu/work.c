/* What blocks of a kernel cost: the same draws in every run, whatever else is launched. And which kernels are communication. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static struct work_class *classes;

static uint64_t hash_of(const char *text) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

/* splitmix64, as a number from 0 to 1 */
static double uniform(uint64_t seed) {
    uint64_t z = seed * 0x9e3779b97f4a7c15u + 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (double)(z >> 11) * 0x1p-53;
}

/* f(n) = n^a blocks' worth of throughput, f(full) = gain; a block among n runs at (f(n)/n) / (f(full)/full). */
static void set_rates(struct work_class *work, double gain) {
    const double a = work->full > 1 ? log(gain) / log(work->full) : 1;
    for (int n = 1; n <= MAX_BLOCKS; n++)
        work->rate[n] = n == work->full ? 1 : pow((double)n / work->full, a - 1);
}

struct work_class *sim_work_class(const struct gpu *gpu, const struct kernel_image *image, int threads) {
    for (struct work_class *work = classes; work != NULL; work = work->next)
        if (work->gpu == gpu->key && work->threads == threads && work->registers == image->registers &&
            work->static_shared == image->static_shared && strcmp(work->name, image->name) == 0)
            return work;
    struct work_class *const work = calloc(1, sizeof *work);
    if (work == NULL || (work->name = strdup(image->name)) == NULL)
        abort();
    work->gpu = gpu->key;
    work->threads = threads;
    work->registers = image->registers;
    work->scalars = image->scalars;
    work->static_shared = image->static_shared;
    const struct footprint footprint = {.threads = threads,
                                        .registers = image->registers,
                                        .scalars = image->scalars,
                                        .static_shared = image->static_shared};
    work->full = sim_occupancy(gpu, &footprint);
    if (work->full < 1)
        work->full = 1;
    const struct cost cost = sim_cost_of(image->name);
    work->block_us = cost.block_us;
    work->spread = cost.spread;
    work->sharing = cost.sharing;
    work->bytes_per_us = cost.bytes_per_block / cost.block_us;
    set_rates(work, cost.gain);
    work->seed = hash_of(image->name);
    work->communication = sim_is_communication(image->name);
    work->next = classes;
    classes = work;
    return work;
}

double sim_block_work(const struct launch *launch, uint64_t block) {
    const struct work_class *const work = launch->work;
    const double draw = 2 * uniform(launch->seed + block) - 1;
    return work->block_us * launch->scale * (1 + work->spread * draw);
}

/* ---- communication, by the names that libraries give it: for the timeline's flag only ---- */

/* A pattern is found anywhere in the name, mangled or not. */
static const char *const parts[] = {
    "oneRankReduce",
    "mscclKernel",
    "mscclpp",
    "nvshmem",
    "deep_ep",
    "cross_device_reduce",
    "all_reduce_kernel",
    "multimem_all_gather_kernel",
    "multimem_one_shot_reduce_kernel",
    "symmetric_memory",
    "nccl_extension",
    "allreduce_prototype",
    "allreduce_fusion_kernel",
    "oneShotAllReduceKernel",
    "twoShotAllReduceKernel",
    "oneshotAllreduceFusionKernel",
    "twoshotAllreduceKernel",
    "moeA2A",
    "moeAllToAllKernel",
    "helixAllToAllKernel",
    "allreduce_allgather_kernel",
    "reducescatter_allreduce_kernel",
    "userbuffers",
    "UCC_REDUCE",
    "ibgda_",
    "ddaAllReduce",
    "ddaReduceScatter",
    "ddaAllToAll",
    "ddaAllGather",
    "_on_stream_kernel",
};

/* nccl(Dev|Sym|Symk)?(Dev)?Kernel */
static bool is_nccl(const char *name) {
    for (const char *at = name; (at = strstr(at, "nccl")) != NULL; at += 4) {
        const char *rest = at + 4;
        if (strncmp(rest, "Symk", 4) == 0)
            rest += 4;
        else if (strncmp(rest, "Sym", 3) == 0)
            rest += 3;
        if (strncmp(rest, "Dev", 3) == 0)
            rest += 3;
        if (strncmp(rest, "Kernel", 6) == 0)
            return true;
    }
    return false;
}

bool sim_is_communication(const char *kernel) {
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(kernel, parts[i]) != NULL)
            return true;
    return is_nccl(kernel);
}
