/* The blocks of one multiprocessor: what fits, how fast each runs, which ends next.
 *
 * Blocks of one kernel share the speed of their multiprocessor (work.c). While blocks of another kernel are there,
 * too, a block takes 1 + `sharing` times as long. A block that moves memory runs by the memory clock of its
 * device, which goes more slowly while the bandwidth is short (scheduler.c).
 */
#include <math.h>
#include <string.h>

#include "multiprocessor.h"

static bool moves_memory(const struct block *block) {
    return block->op->launch->work->bytes_per_us > 0;
}

void sim_processor_advance(struct multiprocessor *processor, const struct moment *now) {
    for (int i = 0; i < processor->count; i++) {
        struct block *const block = &processor->blocks[i];
        const double passed =
            moves_memory(block) ? now->memory_us - processor->updated.memory_us : now->us - processor->updated.us;
        block->left -= passed * block->rate;
    }
    processor->updated = *now;
}

static int residents_of(const struct multiprocessor *processor, const struct work_class *work) {
    int residents = 0;
    for (int i = 0; i < processor->count; i++)
        residents += processor->blocks[i].op->launch->work == work;
    return residents;
}

static void set_rates(struct multiprocessor *processor) {
    const struct work_class *work = NULL;
    double rate = 1;
    processor->demand = 0;
    for (int i = 0; i < processor->count; i++) {
        struct block *const block = &processor->blocks[i];
        if (block->op->launch->work != work) { /* mostly the same as of the block before */
            work = block->op->launch->work;
            const int residents = residents_of(processor, work);
            rate = work->rate[residents] / (residents < processor->count ? 1 + work->sharing : 1);
        }
        block->rate = rate;
        processor->demand += rate * work->bytes_per_us;
    }
}

static void set_next(struct multiprocessor *processor) {
    processor->next = (struct moment){HUGE_VAL, HUGE_VAL};
    for (int i = 0; i < processor->count; i++) {
        const struct block *const block = &processor->blocks[i];
        const double wait = fmax(block->left, 0) / block->rate;
        if (moves_memory(block))
            processor->next.memory_us = sim_earlier(processor->next.memory_us, processor->updated.memory_us + wait);
        else
            processor->next.us = sim_earlier(processor->next.us, processor->updated.us + wait);
    }
}

/* Blocks have come or gone: all have other speeds. */
void sim_processor_changed(struct multiprocessor *processor) {
    set_rates(processor);
    set_next(processor);
}

/* Spreads a block's warps over the partitions, the emptiest first. */
static bool find_warps(const struct gpu *gpu, const struct multiprocessor *processor, const struct launch *launch,
                       uint8_t *out) {
    const int slots = gpu->threads / WARP / PARTITIONS, file = gpu->registers / PARTITIONS;
    int room[PARTITIONS], total = 0;
    for (int i = 0; i < PARTITIONS; i++) {
        room[i] = slots - processor->warps[i];
        if (launch->registers_of_warp > 0) {
            const int by_registers = (file - processor->registers[i]) / launch->registers_of_warp;
            room[i] = by_registers < room[i] ? by_registers : room[i];
        }
        if (launch->scalars_of_warp > 0) {
            const int by_scalars = (SCALAR_FILE - processor->scalars[i]) / launch->scalars_of_warp;
            room[i] = by_scalars < room[i] ? by_scalars : room[i];
        }
        total += room[i];
        out[i] = 0;
    }
    if (total < launch->warps)
        return false;
    for (int warp = 0; warp < launch->warps; warp++) {
        int best = 0;
        for (int i = 1; i < PARTITIONS; i++)
            if (room[i] - out[i] > room[best] - out[best])
                best = i;
        out[best]++;
    }
    return true;
}

static int barriers_of(const struct launch *launch) {
    return BARRIERS > 0 && launch->warps > 1;
}

bool sim_processor_fits(const struct gpu *gpu, const struct multiprocessor *processor, const struct launch *launch,
                        uint8_t *warps) {
    return processor->count < gpu->blocks && processor->barriers + barriers_of(launch) <= BARRIERS &&
           processor->shared + launch->shared <= launch->room && find_warps(gpu, processor, launch, warps);
}

static void take(struct multiprocessor *processor, const struct block *block, int sign) {
    const struct launch *const launch = block->op->launch;
    for (int i = 0; i < PARTITIONS; i++) {
        processor->warps[i] += sign * block->warps[i];
        processor->registers[i] += sign * block->warps[i] * launch->registers_of_warp;
        processor->scalars[i] += sign * block->warps[i] * launch->scalars_of_warp;
    }
    processor->barriers += sign * barriers_of(launch);
    processor->shared = sign > 0 ? processor->shared + launch->shared : processor->shared - launch->shared;
}

void sim_processor_put(struct multiprocessor *processor, struct op *op, const uint8_t *warps,
                       const struct moment *now) {
    struct launch *const launch = op->launch;
    sim_processor_advance(processor, now);
    struct block *const block = &processor->blocks[processor->count++];
    *block = (struct block){.op = op, .left = sim_block_work(launch, launch->placed)};
    memcpy(block->warps, warps, sizeof block->warps);
    take(processor, block, 1);
    sim_processor_changed(processor);
    if (launch->placed++ == 0)
        op->start_us = now->us;
    int of_launch = 0;
    for (int i = 0; i < processor->count; i++)
        of_launch += processor->blocks[i].op == op;
    launch->resident_peak = of_launch > launch->resident_peak ? of_launch : launch->resident_peak;
}

struct op *sim_processor_take_ended(struct multiprocessor *processor, int *from, double speed) {
    for (int i = *from; i < processor->count; i++) {
        const struct block *const block = &processor->blocks[i];
        if (block->left > sim_done_us(processor->updated.us, moves_memory(block) ? speed : 1) * block->rate)
            continue;
        struct op *const op = block->op;
        take(processor, block, -1);
        memmove(&processor->blocks[i], &processor->blocks[i + 1],
                (size_t)(processor->count - i - 1) * sizeof(struct block));
        processor->count--;
        processor->no_room_for = 0;
        *from = i;
        return op;
    }
    return NULL;
}
