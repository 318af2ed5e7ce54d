/* What blocks of a kernel cost: the same draws in every run, whatever else is launched. */
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
    struct work_class *const work = sim_new(1, sizeof *work);
    work->name = sim_text(image->name);
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
    work->next = classes;
    classes = work;
    return work;
}

double sim_block_work(const struct launch *launch, uint64_t block) {
    const struct work_class *const work = launch->work;
    const double draw = 2 * uniform(launch->seed + block) - 1;
    return work->block_us * launch->scale * (1 + work->spread * draw);
}
